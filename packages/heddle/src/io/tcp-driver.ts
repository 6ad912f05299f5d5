import { HeddleError, NetworkError, UsageError, type Instant, type StreamEngine } from '../http/index.ts'
import { Alarm, type Clock } from './clock.ts'
import { transportError } from './errors.ts'
import { defaultTurnLimit, largestTurnLimit, Output } from './output.ts'
import { resetSocket, type SocketLike } from './socket.ts'

/** What went over one socket, or over all that share this object. */
export interface DriverCounters {
  /** Calls of `socket.write`. */
  writes: number
  bytesRead: number
  bytesWritten: number
}

/** How a {@link StreamDriver} treats its socket and its engine. */
export interface DriverOptions {
  /** Counts here instead of in an object of its own: the totals of a server or client. */
  readonly counters?: DriverCounters | undefined
  /** An engine threw, which it never should. Its connection is destroyed; default: a process warning. */
  readonly onBug?: ((error: unknown) => void) | undefined
  /** Bytes of bodies an engine may hand over in one turn. Default 262144, and up to 1048576 while such turns leave at once. */
  readonly turnLimit?: number | undefined
  /** Unsent bytes from which on the engine is not asked for more. Default 65536. */
  readonly highWater?: number | undefined
  /**
   * How long none of the last bytes may leave once the engine is done with the connection, ms. What
   * was written together counts as leaving together. Default 60000.
   */
  readonly closeTimeout?: number | undefined
  /** Bytes come through `onRead` (net's `onread`) and not as 'data'. Default false. */
  readonly pushed?: boolean | undefined
}

/** Writes up to this size that the kernel takes at once get no callback: it would cost a `nextTick` per turn. */
const smallWrite = 16_384

/**
 * Bodies of one turn while the last write did not leave at once: only a write that left whole shows
 * progress, and a slow reader that takes it within the engine's send time limit must not be cut off.
 */
const slowTurnLimit = 65_536

const defaults: DriverOptions = {}

/**
 * Runs a {@link StreamEngine} on a socket, and is the one place that decides when bytes leave:
 *
 * - what comes up while input is read, or while an alarm expires, leaves at the end of that callback;
 * - what comes up elsewhere (`engine.onDirty`) leaves in the next batch of `clock.soon`;
 * - a turn is one `socket.write`, of at most `turnLimit` bytes of bodies (64 KiB to a slow reader, up to 1 MiB to one
 *   that took all of the turns before); more follows in the next
 *   batch, so that one big response does not hold up the others;
 * - while the socket holds `highWater` unsent bytes the engine gets no room for bodies, so what it
 *   was asked for counts as sent.
 *
 * One turn: mutate once (`receive`, `receiveEnd`, `expire`), `transmit`, then look at `closing`,
 * `wantsInput` and `deadline`. A later deadline does not move the alarm: it is looked at when the
 * alarm expires, so moving the deadline with every request costs nothing. Once `closing` was `close` or
 * `reset` there are no more turns; `receiveError`, when the socket fails or is gone, is always the last call.
 */
export class StreamDriver {
  readonly socket: SocketLike
  readonly clock: Clock
  counters: DriverCounters
  private engine: StreamEngine | undefined
  /** The engine after `close` or `reset`: it gets `receiveError` and nothing else. */
  private departed: StreamEngine | undefined
  private readonly options: DriverOptions
  private readonly turnLimit: number
  /** What `turnLimit` may grow to, and is now. */
  private readonly largestTurn: number
  private turnSize: number
  private readonly highWater: number
  private readonly output: Output
  private readonly alarm: Alarm
  /** What `alarm` is armed for; Infinity: not armed. */
  private alarmAt: Instant
  /** The engine runs and `transmit` is still to come, so dirt needs no flush of its own. */
  private running: boolean
  private flushPlanned: boolean
  /** The socket holds too much. */
  private blocked: boolean
  /** The last write did not leave at once: ask for callbacks. */
  private slow: boolean
  private paused: boolean
  /** FIN follows what was written. */
  private finSent: boolean
  private finished: boolean
  /** The engine is done; the socket goes once all is sent. */
  private leaving: boolean
  /** What had not left when `alarm` was armed for the last bytes. */
  private lastUnsent: number
  private attached: boolean
  // One closure for each thing others call, made once.
  private readonly flush: () => void
  private readonly onDirty: () => void
  private readonly onWritten: (error?: Error | null) => void
  private readonly onData: (chunk: Uint8Array) => void
  private readonly onEnd: () => void
  private readonly onError: (error: Error) => void
  private readonly onClose: () => void
  private readonly onFinish: () => void

  constructor(socket: SocketLike, clock: Clock, options: DriverOptions = defaults) {
    this.socket = socket
    this.clock = clock
    this.options = options
    this.counters = options.counters ?? { writes: 0, bytesRead: 0, bytesWritten: 0 }
    this.engine = undefined
    this.departed = undefined
    this.turnLimit = options.turnLimit ?? defaultTurnLimit
    this.largestTurn = options.turnLimit ?? largestTurnLimit
    this.turnSize = this.turnLimit
    this.highWater = options.highWater ?? 65_536
    this.output = new Output()
    this.alarm = new Alarm(() => this.expire())
    this.alarmAt = Infinity
    this.running = false
    this.flushPlanned = false
    this.blocked = false
    this.slow = true
    this.paused = false
    this.finSent = false
    this.finished = false
    this.leaving = false
    this.lastUnsent = 0
    this.attached = false
    this.flush = () => {
      this.flushPlanned = false
      this.turn()
    }
    this.onDirty = () => this.planFlush()
    this.onWritten = (error) => {
      // A failed write says no more than the 'error' that follows it.
      if (error === undefined || error === null) this.written()
    }
    this.onData = (chunk) => this.receive(chunk, chunk.length)
    this.onEnd = () => this.receiveEnd()
    this.onError = (error) => this.fail(transportError(error))
    this.onClose = () => this.closed()
    this.onFinish = () => {
      this.finished = true
      if (this.leaving) this.socket.destroy()
    }
  }

  /**
   * Puts `engine` on the socket, starts reading and arms the deadline. What the engine has to send
   * already leaves in the next batch. Once only; throws UsageError the second time.
   */
  attach(engine: StreamEngine): void {
    if (this.attached) throw new UsageError('this driver has an engine already')
    this.attached = true
    this.engine = engine
    engine.onDirty = this.onDirty
    const { socket } = this
    socket.on('end', this.onEnd)
    socket.on('error', this.onError)
    socket.on('close', this.onClose)
    this.paused = !engine.wantsInput
    if (this.options.pushed !== true) socket.on('data', this.onData)
    if (this.paused) socket.pause()
    else socket.resume()
    this.watchDeadline(engine, this.clock.now())
    // 'close' was emitted perhaps, and does not come again.
    if (socket.destroyed) this.clock.soon(this.onClose)
    this.planFlush()
  }

  /**
   * Puts `engine` in the place of the one that runs, which is not called again: for a port where the first
   * bytes tell the protocol. May be called by that engine from inside `receive`, `receiveEnd` or `expire`;
   * the turn goes on with the new one. `counters`: counts there from now on. Does nothing once the
   * engine that was there has left.
   */
  replace(engine: StreamEngine, counters: DriverCounters = this.counters): void {
    if (this.engine === undefined) return
    this.engine.onDirty = ignore
    this.engine = engine
    this.counters = counters
    engine.onDirty = this.onDirty
  }

  /**
   * Takes the engine off and leaves the socket as it is, paused and with nobody listening: for a
   * tunnel that something else continues. Everything sent must have left. Not for `pushed` drivers,
   * whose socket gives its bytes to nobody else: throws UsageError.
   */
  detach(): void {
    if (this.options.pushed === true) throw new UsageError('a socket with onread cannot be handed on')
    const { engine, socket } = this
    this.engine = undefined
    this.departed = undefined
    this.release()
    if (engine !== undefined) engine.onDirty = ignore
    socket.pause()
    socket.off?.('data', this.onData)
    socket.off?.('end', this.onEnd)
    socket.off?.('error', this.onError)
    socket.off?.('close', this.onClose)
    socket.off?.('finish', this.onFinish)
  }

  /** For net's `onread`: `buffer[0, byteCount)` came. False stops the socket from reading. */
  onRead(byteCount: number, buffer: Uint8Array): boolean {
    this.receive(buffer, byteCount)
    return !this.paused
  }

  private receive(buffer: Uint8Array, byteCount: number): void {
    const { engine } = this
    // What comes after the engine left is read and dropped, lest the kernel answer it with RST.
    if (engine === undefined) return this.countRead(byteCount)
    const now = this.startTurn()
    try {
      this.running = true
      engine.receive(buffer, 0, byteCount, now)
      // Not before: these bytes may have told where to count them.
      this.countRead(byteCount)
      this.finishTurn(this.engine ?? engine, now)
    } catch (error) {
      this.bug(error)
    }
    this.endTurn()
  }

  private countRead(byteCount: number): void {
    this.counters.bytesRead += byteCount
  }

  private receiveEnd(): void {
    const { engine } = this
    if (engine === undefined) return
    const now = this.startTurn()
    try {
      this.running = true
      engine.receiveEnd(now)
      this.finishTurn(this.engine ?? engine, now)
    } catch (error) {
      this.bug(error)
    }
    this.endTurn()
  }

  private expire(): void {
    this.alarmAt = Infinity
    if (this.leaving) {
      if (this.socket.writableLength < this.lastUnsent) this.awaitLastBytes(this.clock.now())
      else this.socket.destroy()
    }
    const { engine } = this
    if (engine === undefined) return
    const now = this.startTurn()
    try {
      if (engine.deadline <= now) {
        this.running = true
        engine.expire(now)
        this.finishTurn(this.engine ?? engine, now)
      } else {
        this.watchDeadline(engine, now)
      }
    } catch (error) {
      this.bug(error)
    }
    this.endTurn()
  }

  /** A turn without input. */
  private turn(): void {
    const { engine } = this
    if (engine === undefined) return
    const now = this.startTurn()
    try {
      this.finishTurn(engine, now)
    } catch (error) {
      this.bug(error)
    }
    this.endTurn()
  }

  private startTurn(): Instant {
    const { clock } = this
    return clock.startTurn === undefined ? clock.now() : clock.startTurn()
  }

  private endTurn(): void {
    this.running = false
    this.clock.endTurn?.()
  }

  private planFlush(): void {
    if (this.running || this.flushPlanned || this.engine === undefined) return
    this.flushPlanned = true
    this.clock.soon(this.flush)
  }

  private finishTurn(engine: StreamEngine, now: Instant): void {
    const more = this.transmit(engine, now)
    const { closing } = engine
    if (closing !== 'no') {
      if (closing === 'reset') return this.reset(engine)
      if (!more) this.finish(engine, closing, now)
      if (this.leaving) return
    }
    const { wantsInput } = engine
    if (wantsInput === this.paused) {
      this.paused = !wantsInput
      if (wantsInput) this.socket.resume()
      else this.socket.pause()
    }
    this.watchDeadline(engine, now)
  }

  /** Writes what the engine has for this turn. True: there is more, or the socket has to drain first. */
  private transmit(engine: StreamEngine, now: Instant): boolean {
    const { output, socket } = this
    // A blocked socket has no room for bodies. The engine is asked all the same: it has to know what
    // it cannot get rid of, for that has a time limit.
    output.startTurn(this.blocked ? 0 : this.slow ? Math.min(slowTurnLimit, this.turnLimit) : this.turnSize, socket.writableLength === 0)
    // Dirt from now on may come too late for this turn.
    this.running = false
    const more = engine.transmit(output, now)
    const byteCount = output.pending
    if (byteCount > 0) {
      if (this.finSent || socket.destroyed) output.dropTurn()
      else this.write(byteCount)
    }
    if (more && !this.blocked) this.planFlush()
    return more
  }

  private write(byteCount: number): void {
    const { output, socket, highWater } = this
    this.counters.writes++
    this.counters.bytesWritten += byteCount
    const chunk = output.finishTurn()
    if (this.slow || byteCount > smallWrite || byteCount >= highWater) socket.write(chunk, this.onWritten)
    else socket.write(chunk)
    const unsent = socket.writableLength
    this.slow = unsent > 0
    if (this.slow) this.turnSize = this.turnLimit
    else if (byteCount >= this.turnSize && this.turnSize < this.largestTurn) this.turnSize *= 2
    if (unsent === 0) output.release()
    else this.blocked = unsent >= highWater
  }

  /** Comes a tick late even for what left at once, so only `writableLength` tells. */
  private written(): void {
    const unsent = this.socket.writableLength
    if (unsent === 0) this.output.release()
    if (!this.blocked || unsent >= this.highWater) return
    this.blocked = false
    this.turn()
  }

  private finish(engine: StreamEngine, closing: 'end' | 'close', now: Instant): void {
    const { socket } = this
    if (closing === 'close') {
      this.leaving = true
      this.engine = undefined
      this.departed = engine
      this.awaitLastBytes(now)
      if (this.finished) socket.destroy()
    }
    if (this.finSent) return
    this.finSent = true
    socket.on('finish', this.onFinish)
    socket.end()
  }

  /** The engine is done. The peer may take its time with the rest, as long as it takes some of it. */
  private awaitLastBytes(now: Instant): void {
    this.lastUnsent = this.socket.writableLength
    this.alarmAt = now + (this.options.closeTimeout ?? 60_000)
    this.clock.set(this.alarm, this.alarmAt)
  }

  private reset(engine: StreamEngine): void {
    this.engine = undefined
    this.departed = engine
    this.clock.clear(this.alarm)
    resetSocket(this.socket)
  }

  private watchDeadline(engine: StreamEngine, now: Instant): void {
    const { deadline } = engine
    if (deadline >= this.alarmAt) return
    // Never at once: an engine that does not move its deadline must not spin.
    this.alarmAt = deadline > now ? deadline : now + 1
    this.clock.set(this.alarm, this.alarmAt)
  }

  /** The transport failed or is gone: the engine's last call. */
  private fail(error: HeddleError): void {
    const engine = this.engine ?? this.departed
    if (engine === undefined) return
    this.engine = undefined
    this.departed = undefined
    this.clock.clear(this.alarm)
    const now = this.startTurn()
    try {
      this.running = true
      engine.receiveError(error, now)
    } catch (bug) {
      this.report(bug)
    }
    this.endTurn()
  }

  private closed(): void {
    this.fail(new NetworkError('NETWORK_ERROR', 'the connection was closed'))
    this.release()
  }

  private release(): void {
    this.clock.clear(this.alarm)
    this.output.release()
  }

  private bug(error: unknown): void {
    this.report(error)
    this.socket.destroy()
    this.fail(new HeddleError('HANDLER_FAILED', 'the connection was dropped because of an internal error', { cause: error }))
  }

  private report(error: unknown): void {
    const { onBug } = this.options
    try {
      if (onBug !== undefined) return onBug(error)
    } catch {
      // Falls through: the program's own report failed.
    }
    process.emitWarning(error instanceof Error ? (error.stack ?? error.message) : String(error), 'HeddleBug')
  }
}

function ignore(): void {}
