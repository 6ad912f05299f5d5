import { close, open, write, writeSync } from 'node:fs'
import type { AccessLogStats } from '../metrics/index.ts'
import type { RequestRecord } from '../record.ts'
import { formatLine } from './line.ts'

export interface AccessLogOptions {
  /** How long a line may wait in memory, ms. Default 1,000. */
  readonly flushInterval?: number
  /** Characters gathered before they are written without waiting. Default 65,536. */
  readonly flushSize?: number
  /** Characters kept while the file takes nothing; lines beyond are dropped and counted. Default 16 Mi. */
  readonly maxPending?: number
}

/**
 * JSON lines, one per finished request, gathered and written in large pieces. Nothing here ever
 * waits or throws into a request: a full disk, a missing folder or a reader that stopped reading
 * costs lines, which are counted, and the file is tried again with the next piece.
 *
 * Several workers may share a file: it is opened for appending, and a write holds whole lines.
 */
export class AccessLog {
  readonly #path: string
  readonly #flushSize: number
  readonly #maxPending: number
  readonly #timer: NodeJS.Timeout
  readonly #onExit: () => void
  #fd: number | undefined
  /** Lines that are not being written yet. */
  #pending = ''
  #pendingLines = 0
  /** What the write under way still has to write. */
  #writing: Buffer | undefined
  #writingLines = 0
  /** A write, or the opening that comes before it, is under way. */
  #busy = false
  #reopen = false
  #idle: (() => void)[] = []
  #lines = 0
  #dropped = 0
  #failures = 0

  /** `path`: a file, or `stdout`. */
  constructor(path: string, options: AccessLogOptions = {}) {
    this.#path = path
    this.#flushSize = options.flushSize ?? 65_536
    this.#maxPending = options.maxPending ?? 16 * 2 ** 20
    if (path === 'stdout') this.#fd = 1
    this.#timer = setInterval(() => this.#flush(), options.flushInterval ?? 1_000)
    this.#timer.unref()
    // The last chance of lines when somebody calls process.exit or an error ends the process.
    this.#onExit = () => this.#flushNow()
    process.on('exit', this.#onExit)
  }

  write(record: RequestRecord): void {
    this.#lines++
    if (this.#pending.length >= this.#maxPending) {
      this.#dropped++
      return
    }
    this.#pending += formatLine(record)
    this.#pendingLines++
    if (this.#pending.length >= this.#flushSize) this.#flush()
  }

  /** Opens the file anew before the next write, after log rotation moved it away. */
  reopen(): void {
    this.#reopen = this.#path !== 'stdout'
    this.#flush()
  }

  stats(): AccessLogStats {
    return { lines: this.#lines, dropped: this.#dropped, failures: this.#failures }
  }

  /** Writes what is left and closes the file, within `deadline` ms (default 2 s). Never rejects. */
  async close(deadline = 2_000): Promise<void> {
    clearInterval(this.#timer)
    this.#flush()
    let late = false
    // Only a reader of standard output that stopped reading can take so long.
    const timer = setTimeout(() => {
      late = true
      this.#wakeIdle()
    }, deadline)
    while (this.#busy && !late) await new Promise<void>((resolve) => this.#idle.push(resolve))
    clearTimeout(timer)
    process.off('exit', this.#onExit)
    if (!late) this.#flushNow()
    this.#dropped += this.#pendingLines
    this.#pending = ''
    this.#pendingLines = 0
    this.#closeFile()
  }

  #flush(): void {
    if (this.#busy || (this.#pending === '' && !this.#reopen)) return
    this.#busy = true
    if (this.#reopen) {
      this.#reopen = false
      this.#closeFile()
    }
    if (this.#fd !== undefined) {
      this.#startWrite()
      return
    }
    open(this.#path, 'a', 0o640, (error, fd) => {
      if (error !== null) {
        // The lines stay pending: the next flush tries again, and `maxPending` bounds them.
        this.#failures++
        this.#becomeIdle()
        return
      }
      this.#fd = fd
      this.#startWrite()
    })
  }

  #startWrite(): void {
    if (this.#pending === '') {
      this.#becomeIdle()
      return
    }
    this.#writing = Buffer.from(this.#pending, 'latin1')
    this.#writingLines = this.#pendingLines
    this.#pending = ''
    this.#pendingLines = 0
    this.#continueWrite()
  }

  #continueWrite(): void {
    const piece = this.#writing as Buffer
    write(this.#fd as number, piece, 0, piece.length, null, (error, written) => {
      if (error?.code === 'EAGAIN') {
        // Standard output is a pipe that is full. The wait must not keep an ended process alive.
        setTimeout(() => this.#continueWrite(), 20).unref()
        return
      }
      if (error !== null) {
        this.#failures++
        this.#dropped += this.#writingLines
        if (this.#path !== 'stdout') this.#reopen = true
      } else if (written < piece.length) {
        this.#writing = piece.subarray(written)
        this.#continueWrite()
        return
      }
      this.#writing = undefined
      this.#writingLines = 0
      this.#becomeIdle()
      if (this.#pending.length >= this.#flushSize && error === null) this.#flush()
    })
  }

  #becomeIdle(): void {
    this.#busy = false
    this.#wakeIdle()
  }

  #wakeIdle(): void {
    const waiting = this.#idle
    this.#idle = []
    for (const resolve of waiting) resolve()
  }

  /** The same, without the event loop. */
  #flushNow(): void {
    if (this.#fd === undefined || this.#pending === '') return
    let piece = Buffer.from(this.#pending, 'latin1')
    this.#pending = ''
    try {
      while (piece.length > 0) piece = piece.subarray(writeSync(this.#fd, piece))
    } catch {
      this.#failures++
      this.#dropped += this.#pendingLines
    }
    this.#pendingLines = 0
  }

  #closeFile(): void {
    if (this.#fd === undefined || this.#path === 'stdout') return
    close(this.#fd, () => {})
    this.#fd = undefined
  }
}
