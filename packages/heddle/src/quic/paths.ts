import type { Instant } from '../http/index.ts'
import { Path, type Route } from './path.ts'

/** What {@link Paths} tells of. */
export interface PathOwner {
  /** The peer is at another address. `isNew`: the path is not known to be as the one before, of which only the port differs. */
  onPathChanged(path: Path, isNew: boolean): void
  /** No path is left that leads to the peer. */
  onNoPath(): void
}

/**
 * The network paths of a connection: the current one, and at most one beside it: the one before, or one
 * that the peer tries (RFC 9000 §9). A client's peer does not move; a server's may, once the handshake is
 * confirmed.
 */
export class Paths {
  readonly #owner: PathOwner
  /** Where packets go. */
  current: Path
  other: Path | undefined
  /** Packets of other addresses count. */
  mayMove: boolean

  constructor(first: Path, owner: PathOwner) {
    this.#owner = owner
    this.current = first
    this.other = undefined
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
    // A path that is being validated, or is the way back, is not pushed aside by whoever copies packets (RFC 9000 §9.3).
    if (this.other !== undefined && (this.other.deadline !== Infinity || !this.current.validated)) return undefined
    this.other = new Path(route, false)
    return this.other
  }

  /** The newest packet came by `path` and did more than try it: the peer is there now (RFC 9000 §9.3). */
  onPeerAt(path: Path, _now: Instant): void {
    if (path === this.current) return
    const before = this.current
    this.current = path
    // RFC 9000 §9.3.2: the way back, should the new address not be the peer's.
    this.other = before.validated ? before : undefined
    path.startValidation()
    this.#owner.onPathChanged(path, path.route.remote.address !== before.route.remote.address)
  }

  /** PATH_RESPONSE: whichever path it came by, it validates the one whose challenge it answers (RFC 9000 §8.2.3). */
  receiveResponse(buffer: Uint8Array, start: number): void {
    if (!this.current.receiveResponse(buffer, start)) this.other?.receiveResponse(buffer, start)
  }

  expire(now: Instant): void {
    const { current, other } = this
    if (other !== undefined && other.deadline <= now && !other.expire()) this.other = undefined
    if (current.deadline > now || current.expire()) return
    if (other === undefined || !other.validated) {
      this.#owner.onNoPath()
      return
    }
    // RFC 9000 §9.3.2: nobody answers at the new address, so it is the old one again.
    this.current = other
    this.other = undefined
    this.#owner.onPathChanged(other, false)
  }
}
