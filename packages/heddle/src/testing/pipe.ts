import type { Instant } from '../http/index.ts'
import type { LinkSocket } from './link-socket.ts'
import type { Link } from './link.ts'

/**
 * One direction of a link, from the sender's kernel to the receiver's: bytes taken from `write` are
 * cut into pieces, travel, arrive in order, and wait until the receiver reads them. All of them
 * together are at most `capacity`.
 */
export class Pipe {
  readonly link: Link
  sender: LinkSocket | undefined
  receiver: LinkSocket | undefined
  /** Bytes taken and not yet read. */
  held: number
  /** Arrived and unread. */
  readonly unread: Buffer[]
  unreadLength: number
  /** The FIN has arrived behind all bytes. */
  ended: boolean
  #finSent: boolean
  /** When a RST overtook what had not left yet; Infinity: never. */
  #cutAt: Instant
  #lineFreeAt: Instant
  #lastArrival: Instant

  constructor(link: Link) {
    this.link = link
    this.sender = undefined
    this.receiver = undefined
    this.held = 0
    this.unread = []
    this.unreadLength = 0
    this.ended = false
    this.#finSent = false
    this.#cutAt = Infinity
    this.#lineFreeAt = 0
    this.#lastArrival = 0
  }

  get room(): number {
    return Math.max(0, this.link.options.capacity - this.held)
  }

  /** Takes `chunk`, which must fit in `room` and must not be changed any more. */
  accept(chunk: Buffer): void {
    const { world, options } = this.link
    this.held += chunk.length
    const pieces = options.splits === 'random' ? cut(chunk, (most) => world.random.integer(1, most)) : [chunk]
    for (const piece of pieces) {
      const gone = Math.max(world.now(), this.#lineFreeAt) + piece.length / options.bandwidth
      this.#lineFreeAt = gone
      world.at(this.#arrivalAfter(gone), () => this.#arrive(piece, gone))
    }
  }

  /** FIN, behind what was accepted. */
  finish(): void {
    if (this.#finSent || this.#cutAt !== Infinity) return
    this.#finSent = true
    const { world } = this.link
    const leaves = Math.max(world.now(), this.#lineFreeAt)
    world.at(this.#arrivalAfter(leaves), () => {
      if (this.link.silent || leaves > this.#cutAt) return
      this.ended = true
      this.receiver?.maybeRead()
    })
  }

  /** RST: what has not left yet is lost, what is on its way arrives before it. */
  reset(): void {
    if (this.#cutAt !== Infinity) return
    const { world, options } = this.link
    this.#cutAt = world.now()
    world.after(options.delay + options.jitter, () => {
      if (!this.link.silent) this.receiver?.receiveReset()
    })
  }

  /** Takes up to `most` arrived bytes out. Its room is free for the sender one trip later. */
  read(most: number): Buffer {
    const first = this.unread[0] as Buffer
    let chunk: Buffer
    if (most < first.length) {
      chunk = Buffer.from(first.subarray(0, most))
      this.unread[0] = first.subarray(most)
    } else if (most === first.length || this.unread.length === 1) {
      chunk = first
      this.unread.shift()
    } else {
      const all = Buffer.concat(this.unread)
      chunk = Buffer.from(all.subarray(0, most))
      this.unread.length = 0
      if (most < all.length) this.unread.push(all.subarray(most))
    }
    this.unreadLength -= chunk.length
    this.#free(chunk.length)
    return chunk
  }

  #arrive(piece: Buffer, gone: Instant): void {
    const { link } = this
    if (link.silent || gone > this.#cutAt) return
    const room = link.arrivalLimit - link.arrived
    const arriving = piece.length > room ? piece.subarray(0, room) : piece
    link.arrived += arriving.length
    const receiver = this.receiver as LinkSocket
    if (receiver.destroyed) {
      // Nobody reads here any more: the kernel answers with RST.
      this.#free(arriving.length)
      receiver.refuse()
    } else if (arriving.length > 0) {
      this.unread.push(arriving)
      this.unreadLength += arriving.length
      receiver.maybeRead()
    }
    if (link.arrived >= link.arrivalLimit) link.lose()
  }

  #free(byteCount: number): void {
    const { world, options } = this.link
    world.after(options.delay, () => {
      this.held -= byteCount
      if (!this.link.silent) this.sender?.maybeWrite()
    })
  }

  #arrivalAfter(leaves: Instant): Instant {
    const { world, options } = this.link
    const jitter = options.jitter === 0 ? 0 : world.random.fraction() * options.jitter
    this.#lastArrival = Math.max(this.#lastArrival, leaves + options.delay + jitter)
    return this.#lastArrival
  }
}

/** `chunk` in pieces whose lengths `choose(rest)` picks, skewed so that tiny and large ones both occur. */
function cut(chunk: Buffer, choose: (most: number) => number): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < chunk.length;) {
    const rest = chunk.length - at
    const length = choose(choose(rest))
    pieces.push(chunk.subarray(at, at + length))
    at += length
  }
  return pieces
}
