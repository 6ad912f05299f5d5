import type { Client } from 'heddle/client'
import { HeddleError, TimeoutError, type Instant } from 'heddle/http'
import { Alarm, type Clock } from 'heddle/io'
import { connect, type Socket, type SocketHandler } from 'heddle/websocket'
import { closeClients, laneClient, type Surroundings } from './lane-client.ts'
import type { Loop, Slot, Source } from './loop.ts'
import type { Plan, PlannedRequest } from './plan.ts'
import { restTime } from './rest.ts'
import { Ring } from './ring.ts'
import { addCount, addFailure, Outcome, type Failures } from './tally.ts'

/** Messages over WebSockets, each with an echo: sockets are opened anew when they are lost. */
export class WebSocketSource implements Source {
  readonly plan: Plan
  readonly loop: Loop
  readonly clock: Clock
  readonly request: PlannedRequest
  readonly body: Uint8Array
  readonly headers: [string, string][]
  /** Subprotocols. */
  readonly protocols: string[]
  /** Handshakes that failed, by code. */
  readonly unopened: Failures
  closing: boolean
  readonly #clients: readonly Client[]
  readonly #lanes: readonly Lane[]

  constructor(plan: Plan, loop: Loop, surroundings: Surroundings) {
    const [request] = plan.requests as [PlannedRequest]
    this.plan = plan
    this.loop = loop
    this.clock = surroundings.clock
    this.request = request
    this.body = request.body ?? new Uint8Array(0)
    this.protocols = []
    this.headers = []
    for (let i = 0; i < request.fields.length; i += 2) {
      const [name, value] = request.fields.slice(i, i + 2) as [string, string]
      // The handshake has to know what it asks for.
      if (name === 'sec-websocket-protocol') this.protocols.push(...value.split(',').map((word) => word.trim()))
      else this.headers.push([name, value])
    }
    this.unopened = new Map()
    this.closing = false
    this.#clients = Array.from({ length: plan.connections }, () => laneClient(plan, surroundings))
    this.#lanes = Array.from(
      { length: plan.connections * plan.streams },
      (_, i) => new Lane(this, this.#clients[i % plan.connections] as Client),
    )
  }

  start(): void {
    for (const lane of this.#lanes) lane.open()
  }

  cut(): void {
    for (const lane of this.#lanes) lane.cut()
  }

  get opened(): number {
    return this.#clients.reduce((sum, client) => sum + client.stats().dialled, 0)
  }

  async close(): Promise<void> {
    this.closing = true
    for (const lane of this.#lanes) lane.release()
    // It closes the WebSockets with 1001, and waits for the answers.
    await closeClients(this.#clients, this.clock)
  }
}

/** One socket after the other, with so many messages under way at a time. */
class Lane implements SocketHandler {
  readonly source: WebSocketSource
  readonly #client: Client
  readonly #restAlarm: Alarm
  readonly #opening: AbortController
  #socket: Socket | undefined
  #slots: MessageSlot[]
  /** Those under way: answers come in the order of the messages. */
  readonly #waiting: Ring<MessageSlot>
  #failuresInRow: number
  #cut: boolean

  constructor(source: WebSocketSource, client: Client) {
    this.source = source
    this.#client = client
    this.#restAlarm = new Alarm(() => this.open())
    this.#opening = new AbortController()
    this.#socket = undefined
    this.#slots = []
    this.#waiting = new Ring()
    this.#failuresInRow = 0
    this.#cut = false
  }

  open(): void {
    const { plan, request, headers, protocols } = this.source
    const { scheme, authority, path } = request
    const options = {
      client: this.#client,
      headers,
      protocols,
      deflate: plan.deflate,
      handshakeTimeout: plan.timeout,
      signal: this.#opening.signal,
    }
    connect(`${scheme === 'https' ? 'wss' : 'ws'}://${authority}${path}`, options).then(
      (socket) => this.#opened(socket),
      (error: unknown) => this.#unopened(error),
    )
  }

  #opened(socket: Socket): void {
    const { plan, loop, closing } = this.source
    if (closing) return socket.abort()
    this.#socket = socket
    socket.handler = this
    this.#slots = Array.from({ length: plan.inFlight }, () => new MessageSlot(this))
    for (const slot of this.#slots) loop.offer(slot)
  }

  #unopened(error: unknown): void {
    const { closing, loop, unopened } = this.source
    if (closing) return
    const { code, message } = error instanceof HeddleError ? error : { code: 'HANDSHAKE_FAILED', message: String((error as Error).message) }
    addFailure(unopened, code, message)
    loop.couldNotConnect(message)
    this.#rest()
  }

  #rest(): void {
    const { clock, closing, loop } = this.source
    if (closing || loop.phase === 'over') return
    clock.set(this.#restAlarm, clock.now() + restTime(this.#failuresInRow++))
  }

  send(slot: MessageSlot): void {
    const { body, request } = this.source
    this.#waiting.push(slot)
    this.#socket?.post(body, { owned: true, text: request.text })
  }

  /** An answer did not come: those behind it could not be told apart from it. */
  giveUp(): void {
    const { plan } = this.source
    this.#socket?.abort(new TimeoutError('total', `no echo within ${plan.timeout} ms`))
  }

  cut(): void {
    this.#cut = true
    this.#socket?.abort()
  }

  release(): void {
    this.source.clock.clear(this.#restAlarm)
    this.#opening.abort()
  }

  onMessage(socket: Socket, buffer: Uint8Array, start: number, limit: number, binary: boolean): void {
    const slot = this.#waiting.shift()
    // Nobody has asked.
    if (slot === undefined) return
    this.#failuresInRow = 0
    const { body, plan, request } = this.source
    const isEcho = plan.echo === 'any' || (binary !== request.text && isSame(buffer, start, limit, body))
    slot.answered(socket.version, limit - start, isEcho)
  }

  onClose(_socket: Socket, code: number, _reason: string, _wasClean: boolean, error: HeddleError | undefined): void {
    this.#socket = undefined
    for (const slot of this.#slots) slot.gone = true
    const lost = this.#waiting
    const failure = error ?? new HeddleError('PEER_CLOSED', `the server closed the WebSocket with ${code}`)
    while (lost.length > 0) lost.shift()?.lost(failure, this.#cut)
    this.#rest()
  }
}

/** One message at a time. */
class MessageSlot implements Slot {
  gone: boolean
  readonly #lane: Lane
  readonly #alarm: Alarm
  #due: Instant
  #sent: Instant

  constructor(lane: Lane) {
    this.gone = false
    this.#lane = lane
    this.#alarm = new Alarm(() => lane.giveUp())
    this.#due = 0
    this.#sent = 0
  }

  begin(due: Instant): void {
    const { clock, plan } = this.#lane.source
    this.#due = due
    this.#sent = clock.now()
    clock.set(this.#alarm, this.#sent + plan.timeout)
    this.#lane.send(this)
  }

  answered(version: string, byteCount: number, isEcho: boolean): void {
    const { loop, clock, body } = this.#lane.source
    clock.clear(this.#alarm)
    const outcome = isEcho ? Outcome.Succeeded : Outcome.Rejected
    const tally = loop.measurement.ended(0, outcome, this.#due, this.#sent, clock.now())
    if (tally !== undefined) {
      tally.bytesReceived += byteCount
      tally.bytesSent += body.length
      addCount(tally.protocols, version)
      if (!isEcho) addFailure(tally.failures, 'ECHO_DIFFERS', 'the answer was another message than the one sent')
    }
    loop.offer(this)
    loop.ended()
  }

  lost(error: HeddleError, cut: boolean): void {
    const { loop, clock, body } = this.#lane.source
    clock.clear(this.#alarm)
    const outcome = cut ? Outcome.Unfinished : Outcome.Failed
    const tally = loop.measurement.ended(0, outcome, this.#due, this.#sent, clock.now())
    if (tally !== undefined) {
      tally.bytesSent += body.length
      if (!cut) addFailure(tally.failures, error.code, error.message)
    }
    loop.ended()
  }
}

function isSame(buffer: Uint8Array, start: number, limit: number, body: Uint8Array): boolean {
  if (limit - start !== body.length) return false
  if (body.length > 256) return Buffer.compare(buffer.subarray(start, limit), body) === 0
  for (let i = 0; i < body.length; i++) if (buffer[start + i] !== body[i]) return false
  return true
}
