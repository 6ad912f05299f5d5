import type { Client, ClientExchangeHandler, Origin, Ticket } from 'heddle/client'
import { CancelReason, Head, requestHead, type Exchange, type Fields, type HeddleError, type Instant } from 'heddle/http'
import { Alarm, type Clock } from 'heddle/io'
import { grpcStatusOf } from './grpc.ts'
import { closeClients, laneClient, type Surroundings } from './lane-client.ts'
import type { Loop, Slot, Source } from './loop.ts'
import type { Plan } from './plan.ts'
import { SeededRandom, WeightedChoice } from './random.ts'
import { restTime, isConnectFailure } from './rest.ts'
import { addCount, addFailure, Outcome } from './tally.ts'

/** Requests of HTTP and gRPC: as many connections as were asked for, each with as many slots as requests at once. */
export class HttpSource implements Source {
  readonly plan: Plan
  readonly loop: Loop
  readonly clock: Clock
  readonly heads: readonly Head[]
  readonly choice: WeightedChoice
  readonly #clients: readonly Client[]
  readonly #slots: HttpSlot[]

  constructor(plan: Plan, loop: Loop, surroundings: Surroundings) {
    this.plan = plan
    this.loop = loop
    this.clock = surroundings.clock
    this.heads = plan.requests.map(({ method, scheme, authority, path, fields }) => requestHead(method, scheme, authority, path, fields))
    this.choice = new WeightedChoice(
      plan.requests.map(({ weight }) => weight),
      new SeededRandom(plan.seed, 2 * plan.thread + 1),
    )
    this.#clients = Array.from({ length: plan.connections }, () => laneClient(plan, surroundings))
    // One stream of every connection before the second of any, so that few requests are spread over all.
    this.#slots = Array.from(
      { length: plan.connections * plan.streams },
      (_, i) => new HttpSlot(this, this.#clients[i % plan.connections] as Client),
    )
  }

  start(): void {
    for (const slot of this.#slots) this.loop.offer(slot)
  }

  cut(): void {
    for (const slot of this.#slots) slot.cut()
  }

  /** Connections made so far. */
  get opened(): number {
    return this.#clients.reduce((sum, client) => sum + client.stats().dialled, 0)
  }

  close(): Promise<void> {
    for (const slot of this.#slots) slot.release()
    return closeClients(this.#clients, this.clock)
  }
}

/** One request at a time on one connection; the same object for all of them. */
class HttpSlot implements Slot, ClientExchangeHandler {
  readonly gone: boolean
  readonly replayable: boolean
  readonly #source: HttpSource
  readonly #client: Client
  /** Of each kind of request. */
  readonly #origins: readonly Origin[]
  readonly #alarm: Alarm
  readonly #restAlarm: Alarm
  #ticket: Ticket | undefined
  #exchange: Exchange | undefined
  #kind: number
  #due: Instant
  #sent: Instant
  #status: number
  #grpcStatus: number
  #received: number
  #timedOut: boolean
  #cut: boolean
  #failuresInRow: number

  constructor(source: HttpSource, client: Client) {
    this.gone = false
    this.replayable = true
    this.#source = source
    this.#client = client
    this.#origins = source.plan.requests.map(({ origin }) => client.origin(origin))
    this.#alarm = new Alarm(() => this.#expire())
    this.#restAlarm = new Alarm(() => this.#source.loop.offer(this))
    this.#ticket = undefined
    this.#exchange = undefined
    this.#kind = 0
    this.#due = 0
    this.#sent = -1
    this.#status = 0
    this.#grpcStatus = -1
    this.#received = 0
    this.#timedOut = false
    this.#cut = false
    this.#failuresInRow = 0
  }

  begin(due: Instant): void {
    const { choice, clock, plan } = this.#source
    this.#kind = choice.next()
    this.#due = due
    this.#sent = -1
    this.#status = 0
    this.#grpcStatus = -1
    this.#received = 0
    this.#timedOut = false
    clock.set(this.#alarm, clock.now() + plan.timeout)
    this.#ticket = this.#client.exchange(this.#origins[this.#kind] as Origin, this)
  }

  cut(): void {
    if (this.#ticket === undefined) return
    this.#cut = true
    this.#ticket.cancel(CancelReason.Cancelled)
  }

  /** It is not needed any more. */
  release(): void {
    this.#source.clock.clear(this.#restAlarm)
  }

  #expire(): void {
    this.#timedOut = true
    this.#ticket?.cancel(CancelReason.Timeout)
  }

  onOpen(exchange: Exchange): void {
    const { heads, plan, clock } = this.#source
    this.#exchange = exchange
    if (this.#sent < 0) this.#sent = clock.now()
    const body = plan.requests[this.#kind]?.body
    const isEmpty = body === undefined || body.length === 0
    exchange.sendHead(heads[this.#kind] as Head, isEmpty)
    if (!isEmpty) exchange.sendOwned(body, true)
  }

  onHead(head: Head, end: boolean): void {
    if (head.status < 200) return
    this.#status = head.status
    if (end && this.#source.plan.kind === 'grpc') this.#grpcStatus = grpcStatusOf(head.fields)
  }

  onData(_buffer: Uint8Array, start: number, limit: number): void {
    this.#received += limit - start
    this.#exchange?.consume(limit - start)
  }

  onTrailers(fields: Fields): void {
    if (this.#source.plan.kind === 'grpc') this.#grpcStatus = grpcStatusOf(fields)
  }

  onSent(): void {}

  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    const { loop, clock } = this.#source
    const protocol = this.#exchange?.protocol
    const moves = this.#ticket?.moves ?? 0
    clock.clear(this.#alarm)
    this.#ticket = undefined
    this.#exchange = undefined
    const outcome = this.#outcome(error)
    const tally = loop.measurement.ended(this.#kind, outcome, this.#due, this.#sent, clock.now())
    if (tally !== undefined) {
      tally.moved += moves
      tally.bytesReceived += this.#received
      if (this.#sent >= 0) tally.bytesSent += this.#source.plan.requests[this.#kind]?.body?.length ?? 0
      if (this.#status > 0) addCount(tally.statuses, this.#status)
      if (protocol !== undefined && outcome <= Outcome.Rejected) addCount(tally.protocols, protocol)
      if (this.#source.plan.kind === 'grpc' && outcome <= Outcome.Rejected) addCount(tally.grpcStatuses, this.#grpcStatus)
      if (outcome === Outcome.Failed) this.#countFailure(error, tally.failures)
    }
    if (outcome === Outcome.Failed) this.#rest(error)
    else {
      this.#failuresInRow = 0
      loop.offer(this)
    }
    loop.ended()
  }

  #outcome(error: HeddleError | undefined): Outcome {
    if (this.#cut) return Outcome.Unfinished
    if (error !== undefined || this.#timedOut) return Outcome.Failed
    const { kind, requests } = this.#source.plan
    const accepted = requests[this.#kind]?.accept[this.#status] === 1 && (kind !== 'grpc' || this.#grpcStatus === 0)
    return accepted ? Outcome.Succeeded : Outcome.Rejected
  }

  #countFailure(error: HeddleError | undefined, failures: Parameters<typeof addFailure>[0]): void {
    if (this.#timedOut) addFailure(failures, 'TOTAL_TIMEOUT', `no whole answer within ${this.#source.plan.timeout} ms`)
    else if (error !== undefined) addFailure(failures, error.code, error.message)
  }

  /** A closed loop that fails pauses, or it would do nothing but fail; an open one is begun by its plan. */
  #rest(error: HeddleError | undefined): void {
    const { loop, clock, plan } = this.#source
    if (error !== undefined && isConnectFailure(error)) loop.couldNotConnect(error.message)
    if (plan.rate > 0 || this.#timedOut) loop.offer(this)
    else clock.set(this.#restAlarm, clock.now() + restTime(this.#failuresInRow++))
  }
}
