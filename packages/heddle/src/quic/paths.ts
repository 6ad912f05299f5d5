import type { Instant } from '../http/index.ts'
import { Path, type Route } from './path.ts'
import type { RemoteIds } from './remote-ids.ts'

/** RFC 9000 §8.2.4: of a path of which nothing is known the probe timeout is this (ms): RFC 9002 §6.2.2's round trip, three times. */
const initialProbeTimeout = 999

/** What {@link Paths} tells of, and asks. */
export interface PathOwner {
  /** Packets go by another path. `isNew`: it is not known to be as the one before, of which only the port differs. */
  onPathChanged(path: Path, isNew: boolean): void
  /** No path is left that leads to the peer. */
  onNoPath(): void
  /** ms. */
  readonly probeTimeout: number
}

/**
 * The network paths of a connection: the current one, and at most one beside it: the one before, or one
 * that the peer tries (RFC 9000 §9). A client's peer does not move; a server's may, once the handshake is
 * confirmed. Each path has a connection id of its own, if the peer gave enough (RFC 9000 §9.5).
 */
export class Paths {
  readonly #owner: PathOwner
  readonly #ids: RemoteIds
  /** Where packets go. */
  current: Path
  other: Path | undefined
  /** Where a datagram came from that was not opened yet. */
  #stranger: Path | undefined
  /** Packets of other addresses count. */
  mayMove: boolean

  constructor(first: Path, owner: PathOwner, ids: RemoteIds) {
    this.#owner = owner
    this.#ids = ids
    this.current = first
    this.other = undefined
    this.#stranger = undefined
    this.mayMove = false
  }

  /** When something is to be done about a validation. */
  get deadline(): Instant {
    const other = this.other
    return other === undefined ? this.current.deadline : Math.min(this.current.deadline, other.deadline)
  }

  /** The path that a datagram came by; undefined: the datagram is not to be read (RFC 9000 §9). */
  of(route: Route): Path | undefined {
    if (route.key === this.current.route.key) return this.current
    if (route.key === this.other?.route.key) return this.other
    if (!this.mayMove) return undefined
    if (route.key !== this.#stranger?.route.key) this.#stranger = new Path(route, false)
    return this.#stranger
  }

  /** A packet that came by `path` was opened: it is the peer's. So it may be answered there, unless the place is taken. */
  onOpened(path: Path): void {
    if (path !== this.#stranger) return
    const { other } = this
    // A path that is being validated, or is the way back, is not pushed aside by whoever copies packets (RFC 9000 §9.3).
    if (other !== undefined && (other.isValidating || !this.current.validated)) return
    this.#stranger = undefined
    if (other !== undefined) this.#ids.dropBeside()
    this.other = path
  }

  /** The newest packet came by `path` and did more than try it: the peer is there now (RFC 9000 §9.3). */
  onPeerAt(path: Path, now: Instant): void {
    const before = this.current
    if (path === before) return
    const { other } = this
    // RFC 9000 §9.3.2: the way back, should the new address not be the peer's.
    const wayBack = before.validated ? before : other !== path && other?.validated === true ? other : undefined
    if (path === other) {
      this.#ids.swap()
      if (wayBack === undefined) this.#ids.dropBeside()
    } else {
      this.#stranger = undefined
      if (wayBack !== other && other !== undefined) this.#ids.dropBeside()
      if (wayBack === before) this.#ids.swap()
      else this.#ids.change()
    }
    this.current = path
    this.other = wayBack
    const patience = 3 * Math.max(this.#owner.probeTimeout, initialProbeTimeout)
    if (!path.validated) path.startValidation(patience, now)
    // RFC 9000 §9.3.3: who forwards packets faster than the path does has changed nothing for the peer, which says so there.
    if (wayBack === before) before.startValidation(patience, now)
    this.#owner.onPathChanged(path, path.route.remote.address !== before.route.remote.address)
  }

  /** PATH_RESPONSE: whichever path it came by, it validates the one whose challenge it answers (RFC 9000 §8.2.3). */
  receiveResponse(buffer: Uint8Array, start: number): void {
    if (!this.current.receiveResponse(buffer, start)) this.other?.receiveResponse(buffer, start)
  }

  expire(now: Instant): void {
    const { current, other } = this
    if (other !== undefined && other.deadline <= now && !other.expire(now) && current.validated) {
      this.other = undefined
      this.#ids.dropBeside()
    }
    if (current.deadline > now || current.expire(now)) return
    const back = this.other
    if (back?.validated !== true) {
      this.#owner.onNoPath()
      return
    }
    // RFC 9000 §9.3.2: nobody answers at the new address, so it is the old one again. If nobody answers there either,
    // the peer may still come back to one of them before the idle timeout.
    this.current = back
    this.other = undefined
    this.#ids.swap()
    this.#ids.dropBeside()
    this.#owner.onPathChanged(back, false)
  }
}
