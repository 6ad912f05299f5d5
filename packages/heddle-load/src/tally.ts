import type { Instant } from 'heddle/http'
import { Durations, type DurationsRecord } from './durations.ts'

/** How often something failed, and what the first of them said. */
export interface Failure {
  count: number
  readonly message: string
}

/** Counts by code, for another thread. */
export type Failures = Map<string, Failure>

/** A {@link Tally} as it goes from one thread to another. */
export interface TallyRecord {
  readonly latency: DurationsRecord
  readonly service: DurationsRecord
  readonly succeeded: number
  readonly rejected: number
  readonly failed: number
  readonly unfinished: number
  readonly moved: number
  readonly statuses: ReadonlyMap<number, number>
  readonly grpcStatuses: ReadonlyMap<number, number>
  readonly protocols: ReadonlyMap<string, number>
  readonly failures: Failures
  readonly bytesReceived: number
  readonly bytesSent: number
}

/** What became of the requests of one kind that were due while it was measured. */
export class Tally {
  /** From the moment it was due to the end of its answer. */
  readonly latency: Durations = new Durations()
  /** From the moment it was given to a connection. */
  readonly service: Durations = new Durations()
  /** Answered, and the answer was a success … */
  succeeded = 0
  /** … or was not: by its status, grpc-status or echo. */
  rejected = 0
  /** Ended without a whole answer. */
  failed = 0
  /** Had no answer when the time was over. */
  unfinished = 0
  /** Moves to another connection, because a server had certainly not acted. */
  moved = 0
  readonly statuses: Map<number, number> = new Map()
  readonly grpcStatuses: Map<number, number> = new Map()
  readonly protocols: Map<string, number> = new Map()
  readonly failures: Failures = new Map()
  /** Of contents and messages. */
  bytesReceived = 0
  bytesSent = 0

  add(other: TallyRecord): void {
    this.latency.add(other.latency)
    this.service.add(other.service)
    this.succeeded += other.succeeded
    this.rejected += other.rejected
    this.failed += other.failed
    this.unfinished += other.unfinished
    this.moved += other.moved
    for (const [status, count] of other.statuses) addCount(this.statuses, status, count)
    for (const [status, count] of other.grpcStatuses) addCount(this.grpcStatuses, status, count)
    for (const [protocol, count] of other.protocols) addCount(this.protocols, protocol, count)
    addFailures(this.failures, other.failures)
    this.bytesReceived += other.bytesReceived
    this.bytesSent += other.bytesSent
  }

  toRecord(): TallyRecord {
    return { ...this, latency: this.latency.toRecord(), service: this.service.toRecord() }
  }
}

/** One more of `key`, or `count`. */
export function addCount<Key>(counts: Map<Key, number>, key: Key, count = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + count)
}

/** One more failure of `code`. */
export function addFailure(failures: Failures, code: string, message: string): void {
  const known = failures.get(code)
  if (known === undefined) failures.set(code, { count: 1, message })
  else known.count++
}

/** All of `more`. */
export function addFailures(failures: Failures, more: Failures): void {
  for (const [code, { count, message }] of more) {
    const known = failures.get(code)
    if (known === undefined) failures.set(code, { count, message })
    else known.count += count
  }
}

/** What became of one request. */
export const Outcome = { Succeeded: 0, Rejected: 1, Failed: 2, Unfinished: 3 } as const
export type Outcome = (typeof Outcome)[keyof typeof Outcome]

/** The part of the time that is measured, and what is counted of all kinds together. */
export class Measurement {
  /** Requests that are due from here on are measured. */
  readonly from: Instant
  /** Successes up to here count for the rate. Infinity while it is not known. */
  until: Instant
  /** One for each kind of request. */
  readonly tallies: readonly Tally[]
  /** Requests that were due, … */
  due: number
  /** … of which so many were never begun. */
  notBegun: number
  /** Successes that came between `from` and `until`, whenever they were due. */
  succeededInTime: number
  /** When the last request ended. */
  lastEnd: Instant
  /** How late an open loop noticed that a request was due. */
  readonly lateness: Durations
  /** All answers and errors so far, the warm-up included. */
  answered: number
  errors: number

  constructor(from: Instant, kinds: number) {
    this.from = from
    this.until = Infinity
    this.tallies = Array.from({ length: kinds }, () => new Tally())
    this.due = 0
    this.notBegun = 0
    this.succeededInTime = 0
    this.lastEnd = from
    this.lateness = new Durations()
    this.answered = 0
    this.errors = 0
  }

  /** A request of `kind`, due at `due` and sent at `sent`, ended `now`. Returns its tally if it is measured. */
  ended(kind: number, outcome: Outcome, due: Instant, sent: Instant, now: Instant): Tally | undefined {
    const isAnswer = outcome <= Outcome.Rejected
    if (isAnswer) this.answered++
    if (outcome !== Outcome.Succeeded) this.errors++
    else if (now >= this.from && now <= this.until) this.succeededInTime++
    if (due < this.from) return undefined
    this.lastEnd = now
    const tally = this.tallies[kind] as Tally
    if (isAnswer) {
      tally.latency.record(now - due)
      tally.service.record(now - sent)
    }
    if (outcome === Outcome.Succeeded) tally.succeeded++
    else if (outcome === Outcome.Rejected) tally.rejected++
    else if (outcome === Outcome.Failed) tally.failed++
    else tally.unfinished++
    return tally
  }
}
