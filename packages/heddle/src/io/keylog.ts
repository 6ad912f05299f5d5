import { openSync, writeSync } from 'node:fs'

let file: number | undefined
let tried = false

/**
 * Appends one line of NSS key log to the file the environment's SSLKEYLOGFILE names, if it does.
 * The variable is read at the first line; a file that cannot be written is told once, as a warning.
 */
export function writeKeylog(line: Uint8Array): void {
  if (!keylogWanted()) return
  try {
    file ??= openSync(process.env['SSLKEYLOGFILE'] as string, 'a', 0o600)
    writeSync(file, line)
  } catch (error) {
    if (!tried) process.emitWarning(`SSLKEYLOGFILE: ${(error as Error).message}`, 'HeddleWarning')
    tried = true
  }
}

/** True when SSLKEYLOGFILE is set and its file was not found unwritable. */
export function keylogWanted(): boolean {
  return !tried && (process.env['SSLKEYLOGFILE'] ?? '') !== ''
}
