#!/usr/bin/env node
/** The program `heddle-load`. */
import { main } from './cli.ts'

// Whoever reads the report may have read enough of it.
process.stdout.on('error', () => {})
process.exitCode = await main(process.argv.slice(2))
