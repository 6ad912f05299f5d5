import { List, type Linked } from '../bytes/index.ts'
import { CancelReason, TimeoutError, type Instant } from '../http/index.ts'
import { Alarm, systemClock, type Clock } from '../io/index.ts'
import type { SocketCore, SocketWatcher } from './core.ts'
import { aClock, aDuration, checkOptions, type OptionChecks } from './option-checks.ts'
import { coreOf, type Socket } from './socket.ts'

/** When a {@link Heartbeat} asks, and how long it waits: ms. */
export interface HeartbeatOptions {
  /** A peer that was silent for this long, and at the latest for twice as long, gets a Ping. Default 30 s. */
  readonly interval?: number | undefined
  /** From the Ping to a sign of life: anything that comes, or that is taken of a backlog. On excess: aborted, IDLE_TIMEOUT. Default 10 s. */
  readonly timeout?: number | undefined
  /** Default: the system's. */
  readonly clock?: Clock | undefined
}

const checks: OptionChecks<HeartbeatOptions> = { interval: aDuration, timeout: aDuration, clock: aClock }

/** One socket that is watched. */
class Beat implements Linked, SocketWatcher {
  previous: Linked | undefined
  next: Linked | undefined
  readonly core: SocketCore
  readonly #heartbeat: Heartbeat
  due: Instant
  /** A Ping was sent. */
  asked: boolean
  /** What had come, and what had been taken, when it was looked at last. */
  received: number
  sent: number

  constructor(heartbeat: Heartbeat, core: SocketCore) {
    this.previous = undefined
    this.next = undefined
    this.core = core
    this.#heartbeat = heartbeat
    this.due = 0
    this.asked = false
    this.received = 0
    this.sent = 0
  }

  onSocketClosed(core: SocketCore): void {
    this.#heartbeat.unwatch(core.socket)
  }
}

const noPayload = new Uint8Array(0)

/**
 * Finds out which peers are gone without a word. It asks those only that are silent, and has one timer for
 * all of them: each list is in the order of time by itself, since what is added waits as long as the others.
 */
export class Heartbeat {
  readonly #interval: number
  readonly #timeout: number
  readonly #clock: Clock
  readonly #beats: Map<Socket, Beat>
  readonly #quiet: List<Beat>
  readonly #asked: List<Beat>
  readonly #alarm: Alarm

  /** Throws UsageError for options that are unknown or wrong. */
  constructor(options: HeartbeatOptions = {}) {
    checkOptions('Heartbeat', '', options, checks)
    const { interval = 30_000, timeout = 10_000, clock = systemClock() } = options
    this.#interval = interval
    this.#timeout = timeout
    this.#clock = clock
    this.#beats = new Map()
    this.#quiet = new List()
    this.#asked = new List()
    this.#alarm = new Alarm(() => this.#expire())
  }

  /** Sockets that are watched. */
  get size(): number {
    return this.#beats.size
  }

  /** Watches `socket` to its end. A no-op if it does so already, or the socket is closed. */
  watch(socket: Socket): void {
    const core = coreOf(socket)
    if (core.closed !== undefined || this.#beats.has(socket)) return
    const beat = new Beat(this, core)
    this.#beats.set(socket, beat)
    core.watch(beat)
    this.#look(beat, this.#clock.now())
    this.#arm()
  }

  /** Does not watch `socket` any more. */
  unwatch(socket: Socket): void {
    const beat = this.#beats.get(socket)
    if (beat === undefined) return
    this.#beats.delete(socket)
    beat.core.unwatch(beat)
    this.#listOf(beat).remove(beat)
    this.#arm()
  }

  /** Watches none any more. */
  stop(): void {
    for (const socket of this.#beats.keys()) this.unwatch(socket)
  }

  #listOf(beat: Beat): List<Beat> {
    return beat.asked ? this.#asked : this.#quiet
  }

  /** It was alive right now. */
  #look(beat: Beat, now: Instant): void {
    const { connection } = beat.core
    beat.asked = false
    beat.due = now + this.#interval
    beat.received = connection?.bytesReceived ?? 0
    beat.sent = connection?.bytesSent ?? 0
    this.#quiet.append(beat)
  }

  #arm(): void {
    const quiet = this.#quiet.first?.due ?? Infinity
    const asked = this.#asked.first?.due ?? Infinity
    this.#clock.set(this.#alarm, Math.min(quiet, asked))
  }

  #expire(): void {
    const now = this.#clock.now()
    for (let beat = this.#asked.first; beat !== undefined && beat.due <= now; beat = this.#asked.first) {
      this.#asked.remove(beat)
      const isAlive = this.#isAlive(beat) || beat.core.isHeldBack
      // A socket that is aborted leaves by itself, out of the list it is in.
      this.#look(beat, now)
      if (isAlive) continue
      const error = new TimeoutError('idle', `the peer gave no sign of life for ${this.#timeout} ms after a Ping`)
      beat.core.abort(error, CancelReason.Timeout)
    }
    for (let beat = this.#quiet.first; beat !== undefined && beat.due <= now; beat = this.#quiet.first) {
      this.#quiet.remove(beat)
      if (this.#isAlive(beat)) this.#look(beat, now)
      else if (beat.core.isHeldBack) this.#probe(beat, now)
      else this.#ask(beat, now)
    }
    this.#arm()
  }

  /**
   * Nothing is taken from the peer, so nothing can be concluded from its silence; but a connection that is gone
   * shows itself when something is sent.
   */
  #probe(beat: Beat, now: Instant): void {
    beat.core.connection?.sendPing(noPayload)
    this.#look(beat, now)
  }

  #ask(beat: Beat, now: Instant): void {
    beat.core.connection?.sendPing(noPayload)
    beat.asked = true
    beat.due = now + this.#timeout
    this.#asked.append(beat)
  }

  #isAlive({ core, received, sent }: Beat): boolean {
    const { connection } = core
    // Not open yet, or closing, for which there are other limits.
    if (connection === undefined || core.state !== 'open') return true
    return connection.bytesReceived > received || (connection.bufferedAmount > 0 && connection.bytesSent > sent)
  }
}
