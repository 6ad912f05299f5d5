#!/usr/bin/env node
/** The program `heddle-load`. */
import { main } from './cli.ts'

process.exitCode = await main(process.argv.slice(2))
