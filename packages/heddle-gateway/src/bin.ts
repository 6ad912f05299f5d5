#!/usr/bin/env node
/** The program `heddle-gateway`. */
import { main } from './cli.ts'

const status = await main(process.argv.slice(2))
// Whatever is still open (a connection that does not end, an upstream) must not keep a stopped gateway alive.
process.exit(status)
