import type { Progress } from './options.ts'
import { progressLine } from './report.ts'

/** What of a terminal is needed to write over a line. */
export interface Terminal {
  readonly columns?: number
  write(text: string): unknown
}

/** The line of a terminal that says how it goes, and is written over. */
export class LiveLine {
  readonly #terminal: Terminal
  #elapsed = 0
  #answered = 0

  constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  /** The rate is that since the last call. */
  show(progress: Progress): void {
    const passed = progress.elapsed - this.#elapsed
    const perSecond = passed > 0 ? ((progress.answered - this.#answered) * 1_000) / passed : 0
    this.#elapsed = progress.elapsed
    this.#answered = progress.answered
    this.#write(progressLine(progress, perSecond))
  }

  /** Leaves an empty line to begin on. */
  clear(): void {
    this.#write('')
    this.#terminal.write('\r')
  }

  #write(text: string): void {
    // In the last column a terminal may go on to the next line.
    const width = (this.#terminal.columns ?? 80) - 1
    this.#terminal.write(`\r${text.slice(0, width).padEnd(width)}`)
  }
}
