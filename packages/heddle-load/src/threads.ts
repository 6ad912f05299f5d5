import { Worker } from 'node:worker_threads'
import type { Order, Report } from './messages.ts'
import type { Progress } from './options.ts'
import { shares, type Plan } from './plan.ts'
import type { Making } from './run.ts'
import type { ThreadRecord } from './thread-run.ts'

/** A load made by several threads, which begin together when all are ready and end by themselves. */
export class Threads implements Making {
  readonly records: Promise<readonly ThreadRecord[]>
  readonly #members: readonly Member[]
  #stopped: boolean

  constructor(plan: Plan) {
    this.#stopped = false
    this.#members = shares(plan).map((share) => new Member(share))
    this.records = this.#run()
  }

  async #run(): Promise<readonly ThreadRecord[]> {
    try {
      await Promise.all(this.#members.map((member) => member.ready))
      for (const member of this.#members) member.tell('go')
      if (this.#stopped) for (const member of this.#members) member.tell('stop')
      return await Promise.all(this.#members.map((member) => member.record))
    } finally {
      // Those that are done have ended; after a failure the others have not.
      await Promise.all(this.#members.map((member) => member.end()))
    }
  }

  stop(): void {
    this.#stopped = true
    for (const member of this.#members) member.tell('stop')
  }

  get progress(): Progress {
    const all = this.#members.map(({ progress }) => progress)
    const sum = (value: (one: Progress) => number): number => all.reduce((total, one) => total + value(one), 0)
    return {
      phase: (['warm-up', 'measuring', 'ending'] as const).find((phase) => all.some((one) => one.phase === phase)) ?? 'ending',
      elapsed: Math.max(...all.map(({ elapsed }) => elapsed)),
      answered: sum(({ answered }) => answered),
      errors: sum(({ errors }) => errors),
      inFlight: sum(({ inFlight }) => inFlight),
      backlog: sum(({ backlog }) => backlog),
    }
  }
}

/** One thread, seen from outside. */
class Member {
  readonly ready: Promise<void>
  readonly record: Promise<ThreadRecord>
  progress: Progress
  readonly #worker: Worker
  readonly #ended: Promise<void>

  constructor(share: Plan) {
    this.progress = { phase: share.warmup > 0 ? 'warm-up' : 'measuring', elapsed: 0, answered: 0, errors: 0, inFlight: 0, backlog: 0 }
    const suffix = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    this.#worker = new Worker(new URL(`./thread.${suffix}`, import.meta.url), { workerData: share })
    const ready = Promise.withResolvers<void>()
    const record = Promise.withResolvers<ThreadRecord>()
    this.ready = ready.promise
    this.record = record.promise
    // Whoever waits for the one hears of a failure; the other is nobody's.
    this.record.catch(() => {})
    this.ready.catch(() => {})
    const fail = (error: Error): void => {
      ready.reject(error)
      record.reject(error)
    }
    this.#worker.on('message', (report: Report) => {
      if (report.type === 'ready') ready.resolve()
      else if (report.type === 'progress') this.progress = report.progress
      else record.resolve(report.record)
    })
    this.#worker.on('error', (error) => fail(error as Error))
    this.#ended = new Promise((resolve) => {
      this.#worker.on('exit', (code) => {
        fail(new Error(`a thread of the load ended before its time, with code ${code}`))
        resolve()
      })
    })
  }

  tell(order: Order): void {
    this.#worker.postMessage(order)
  }

  /** Resolves when the thread is gone. */
  async end(): Promise<void> {
    const timer = setTimeout(() => void this.#worker.terminate(), endTime)
    await this.#ended
    clearTimeout(timer)
  }
}

/** ms that a thread may take to end when it is done. */
const endTime = 2_000
