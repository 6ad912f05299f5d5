import { CancelReason, type Exchange, type HeddleError } from 'heddle/http'
import { Alarm, type Clock } from 'heddle/io'
import type { Attempt } from './attempt.ts'
import type { HeldContent } from './held-content.ts'
import { IdleWatch } from './idle-watch.ts'
import { Lane } from './lane.ts'
import type { Reason } from './reason.ts'

/** ms between the Close that we send to both ends of a WebSocket and the cut, if they do not come to an end of their own. */
const closeTimeout = 5_000

const noBytes = new Uint8Array(0)

/** What a tunnel is part of. */
export interface TunnelOwner {
  /** The tunnel is about to be closed by us. */
  onTunnelEnd(reason: Reason): void
  /** Both ends are gone, or given up. */
  onTunnelOver(): void
}

/**
 * An open tunnel: two lanes, and the end that the gateway makes of it when nothing moves or it has to
 * go. A WebSocket gets a Close (1001) in each lane, behind the last whole frame; the two ends then close
 * by themselves, each with us, and are cut if they do not. Any other tunnel is cut.
 */
export class Tunnel {
  readonly client: Exchange
  readonly attempt: Attempt
  readonly toUpstream: Lane
  readonly toClient: Lane
  /** We are ending it. */
  ending: boolean
  private readonly owner: TunnelOwner
  private readonly clock: Clock
  private readonly watch: IdleWatch | undefined
  private readonly cutAlarm: Alarm
  private clientOver: boolean
  private upstreamOver: boolean

  /** `idleTimeout`: ms without a byte, or Infinity. */
  constructor(owner: TunnelOwner, client: Exchange, attempt: Attempt, websocket: boolean, clock: Clock, idleTimeout: number) {
    const upstream = attempt.exchange as Exchange
    this.owner = owner
    this.client = client
    this.attempt = attempt
    this.toUpstream = new Lane(client, upstream, websocket, true)
    this.toClient = new Lane(upstream, client, websocket, false)
    this.ending = false
    this.clock = clock
    this.watch = idleTimeout === Infinity ? undefined : new IdleWatch(clock, idleTimeout, () => this.end('tunnel_idle'))
    this.cutAlarm = new Alarm(() => this.cut())
    this.clientOver = false
    this.upstreamOver = false
  }

  /** Passes on what was said before the tunnel was open: what the client said, and whether that or the upstream's was all. */
  begin(held: HeldContent | undefined, clientEnded: boolean, upstreamEnded: boolean): void {
    const { toUpstream, toClient } = this
    if (held !== undefined) held.sendTo(toUpstream, clientEnded)
    else if (clientEnded) toUpstream.pass(noBytes, 0, 0, true)
    if (upstreamEnded) toClient.pass(noBytes, 0, 0, true)
  }

  /** The client has gone, and the upstream is given the time to answer a Close. */
  get isLingering(): boolean {
    return this.clientOver && !this.upstreamOver && this.ending && !this.attempt.detached
  }

  fromClient(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.toUpstream.pass(buffer, start, limit, end)
    this.moved()
  }

  fromUpstream(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.toClient.pass(buffer, start, limit, end)
    this.moved()
  }

  /** The client's connection has taken so many bytes. */
  clientTook(byteCount: number): void {
    this.toClient.taken(byteCount)
  }

  /** The same of the upstream's. */
  upstreamTook(byteCount: number): void {
    this.toUpstream.taken(byteCount)
  }

  /** The client's exchange is over. */
  clientClosed(error: HeddleError | undefined): void {
    this.clientOver = true
    this.toUpstream.sourceEnded = true
    if (this.ending && this.toUpstream.closed) {
      // It got the Close, and is given the time to answer it.
      if (error !== undefined) this.toUpstream.end()
      this.settle()
      return
    }
    this.watch?.stop()
    if (error !== undefined) this.attempt.cancel(CancelReason.ConnectError)
    // Upstream may still be taking the end of what the client said.
    else this.attempt.detached = true
    this.settle()
  }

  /** The upstream's exchange is over. True: so is the client's to be, at once. */
  upstreamClosed(error: HeddleError | undefined): boolean {
    this.upstreamOver = true
    this.toClient.sourceEnded = true
    this.settle()
    return error !== undefined && !(this.ending && this.toClient.closed)
  }

  /** Closes it, orderly if that can be. */
  end(reason: Reason): void {
    if (this.ending) return
    this.ending = true
    this.owner.onTunnelEnd(reason)
    this.watch?.stop()
    const { toClient, toUpstream } = this
    // Where one end has begun to close, the two are left to it.
    const closing = toClient.frames?.closing === true || toUpstream.frames?.closing === true
    if (!closing && !(toClient.close() && toUpstream.close())) {
      this.cut()
      return
    }
    this.clock.set(this.cutAlarm, this.clock.now() + closeTimeout)
    this.settle()
  }

  private moved(): void {
    if (this.ending) this.settle()
    else if (this.watch !== undefined) this.watch.lastActivity = this.clock.now()
  }

  /** RFC 6455 §7.1.1: an end that has got our Close, and has sent its own, is let go. */
  private settle(): void {
    if (this.clientOver && this.upstreamOver) {
      this.clock.clear(this.cutAlarm)
      this.owner.onTunnelOver()
    }
    if (!this.ending) return
    const { toClient, toUpstream } = this
    if (toClient.closed && (toUpstream.sourceEnded || toUpstream.frames?.closing === true)) toClient.end()
    if (toUpstream.closed && (toClient.sourceEnded || toClient.frames?.closing === true)) toUpstream.end()
  }

  /** Ends what is left of it. */
  cut(): void {
    this.clock.clear(this.cutAlarm)
    if (!this.upstreamOver) this.attempt.cancel(CancelReason.Cancelled)
    if (this.clientOver) this.owner.onTunnelOver()
    else this.client.cancel(CancelReason.Cancelled)
  }
}
