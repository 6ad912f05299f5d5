import { RangeSet } from '../bytes/index.ts'
import { SentValue } from './sent-value.ts'

/** The ids of one kind of streams that the peer opens. */
class PeerIds {
  /** MAX_STREAMS: so many in all were allowed, or are about to be. */
  limit: number
  /** So many were opened, be it by the id of a later one (RFC 9000 §3.2). */
  opened: number
  /** Opened by the id of a later one, and not used yet. */
  readonly unused: RangeSet
  readonly credit: SentValue
  /** How many may be open at once. */
  readonly #most: number
  #closed: number

  constructor(most: number) {
    this.limit = most
    this.opened = 0
    this.unused = new RangeSet()
    this.credit = new SentValue()
    this.#most = most
    this.#closed = 0
  }

  close(): void {
    this.#closed++
    // A quarter at a time: one frame for many streams, and the peer seldom waits.
    if (this.#closed + this.#most - this.limit >= Math.floor(this.#most / 4)) this.credit.set()
  }

  /** The limit to tell now. */
  refill(): number {
    this.limit = this.#closed + this.#most
    return this.limit
  }
}

/** The ids of one kind of streams that this end opens. */
class OwnIds {
  opened: number
  /** What the peer allows. */
  limit: number
  /** STREAMS_BLOCKED, for the limit that was met last. */
  readonly blocked: SentValue
  blockedAt: number

  constructor() {
    this.opened = 0
    this.limit = 0
    this.blocked = new SentValue()
    this.blockedAt = -1
  }
}

/**
 * Who opened which streams, and how many each may (RFC 9000 §2.1, §4.6). An id is four times its number
 * and two bits: 1 for the server's, 2 for those that go one way.
 */
export class StreamIds {
  readonly #isServer: boolean
  /** By kind: bidirectional, unidirectional. */
  readonly peer: readonly [PeerIds, PeerIds]
  readonly own: readonly [OwnIds, OwnIds]

  constructor(isServer: boolean, bidirectional: number, unidirectional: number) {
    this.#isServer = isServer
    this.peer = [new PeerIds(bidirectional), new PeerIds(unidirectional)]
    this.own = [new OwnIds(), new OwnIds()]
  }

  /** The peer opens streams with ids such as this one. */
  isPeers(id: number): boolean {
    return ((id & 1) === 1) !== this.#isServer
  }

  /** How many streams this end may open now. */
  openable(bidirectional: boolean): number {
    const own = this.own[bidirectional ? 0 : 1]
    return own.limit - own.opened
  }

  /** The id of a new stream of this end; −1: the peer allows no more, and will be told. */
  open(bidirectional: boolean): number {
    const own = this.own[bidirectional ? 0 : 1]
    if (own.opened >= own.limit) {
      if (own.blockedAt !== own.limit) {
        own.blockedAt = own.limit
        own.blocked.set()
      }
      return -1
    }
    return own.opened++ * 4 + (bidirectional ? 0 : 2) + (this.#isServer ? 1 : 0)
  }

  /** MAX_STREAMS, or the first limit. True: it is more than before. */
  allow(bidirectional: boolean, maximum: number): boolean {
    const own = this.own[bidirectional ? 0 : 1]
    if (maximum <= own.limit) return false
    own.limit = maximum
    own.blocked.clear()
    return true
  }

  /** A stream of this end was opened with this id. */
  wasOpened(id: number): boolean {
    return Math.floor(id / 4) < this.own[(id & 2) === 0 ? 0 : 1].opened
  }

  /** A frame for a stream of the peer's that is not in the table. `new`: it is to be made. */
  arrive(id: number): 'new' | 'over' | 'beyond' {
    const peer = this.peer[(id & 2) === 0 ? 0 : 1]
    const number = Math.floor(id / 4)
    if (number >= peer.limit) return 'beyond'
    if (number >= peer.opened) {
      peer.unused.add(peer.opened, number)
      peer.opened = number + 1
      return 'new'
    }
    if (!peer.unused.contains(number)) return 'over'
    peer.unused.remove(number, number + 1)
    return 'new'
  }

  /** A stream of the peer's is over. */
  close(id: number): void {
    this.peer[(id & 2) === 0 ? 0 : 1].close()
  }
}
