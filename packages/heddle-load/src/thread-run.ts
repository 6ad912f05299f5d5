import { HttpSource } from './http-source.ts'
import type { DurationsRecord } from './durations.ts'
import type { Surroundings } from './lane-client.ts'
import { LoopWatch, type LoopWatchRecord } from './loop-watch.ts'
import { Loop, type Source } from './loop.ts'
import type { Progress } from './options.ts'
import type { Plan } from './plan.ts'
import type { Failures, TallyRecord } from './tally.ts'
import { WebSocketSource } from './websocket-source.ts'

/** What one thread has measured. */
export interface ThreadRecord {
  readonly tallies: readonly TallyRecord[]
  readonly due: number
  readonly notBegun: number
  readonly succeededInTime: number
  /** ms that were measured. */
  readonly measured: number
  readonly lateness: DurationsRecord
  /** Connections made, the warm-up included. */
  readonly opened: number
  /** WebSockets that could not be opened, by code. */
  readonly unopened: Failures
  readonly gaveUp: string | undefined
  readonly watch: LoopWatchRecord
}

/** What a load is made by, beside its slots. */
export interface CountingSource extends Source {
  readonly opened: number
  readonly unopened?: Failures
}

/** One thread's share of a load, from its beginning to what it has measured. */
export class ThreadRun {
  /** Fulfilled when all has ended and the connections are closed. */
  readonly record: Promise<ThreadRecord>
  readonly #loop: Loop
  readonly #surroundings: Surroundings

  /** Begins at once. */
  constructor(plan: Plan, surroundings: Surroundings) {
    this.#surroundings = surroundings
    const watch = new LoopWatch()
    const over = Promise.withResolvers<void>()
    let source: CountingSource | undefined
    this.#loop = new Loop(plan, surroundings.clock, (loop) => {
      source = plan.kind === 'websocket' ? new WebSocketSource(plan, loop, surroundings) : new HttpSource(plan, loop, surroundings)
      return source
    })
    this.#loop.onPhase = (phase) => {
      if (phase === 'measuring') watch.start()
      else watch.stop()
      if (phase === 'over') over.resolve()
    }
    this.#loop.start()
    this.record = over.promise.then(async () => {
      const { measurement, gaveUp } = this.#loop
      const made = source as CountingSource
      const { opened } = made
      await made.close()
      return {
        tallies: measurement.tallies.map((tally) => tally.toRecord()),
        due: measurement.due,
        notBegun: measurement.notBegun,
        succeededInTime: measurement.succeededInTime,
        measured: measurement.until - measurement.from,
        lateness: measurement.lateness.toRecord(),
        opened,
        unopened: made.unopened ?? new Map(),
        gaveUp,
        watch: watch.record,
      }
    })
  }

  /** Nothing more becomes due. */
  stop(): void {
    this.#loop.stop()
  }

  get progress(): Progress {
    const { phase, startedAt, measurement, inFlight, backlog } = this.#loop
    return {
      phase: phase === 'over' ? 'ending' : phase,
      elapsed: this.#surroundings.clock.now() - startedAt,
      answered: measurement.answered,
      errors: measurement.errors,
      inFlight,
      backlog,
    }
  }
}
