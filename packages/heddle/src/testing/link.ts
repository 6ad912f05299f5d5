import { checkOptionNames, type Instant, type OptionNames } from '../http/index.ts'
import { LinkSocket } from './link-socket.ts'
import { Pipe } from './pipe.ts'
import type { World } from './world.ts'

/** How a {@link Link} carries bytes. */
export interface LinkOptions {
  /** One way, ms. Default 1. */
  readonly delay?: number
  /** Up to this much more, ms, chosen anew for every piece; order is kept. Default 0. */
  readonly jitter?: number
  /** Bytes per ms, each way. Default Infinity. */
  readonly bandwidth?: number
  /**
   * How the receiver gets the byte stream: all that is there (`none`), in pieces cut by the seed
   * (`random`), or every byte by itself (`bytewise`). Default none.
   */
  readonly splits?: 'none' | 'random' | 'bytewise'
  /** Bytes each way that fit between one program's `write` and the other's `data`: the kernels' buffers. Default 256 KiB. */
  readonly capacity?: number
  /** `write` returns false at this `writableLength`. Default 64 KiB. */
  readonly highWaterMark?: number
  /** False: a FIN is answered with a FIN. Default true. */
  readonly allowHalfOpen?: boolean
  /**
   * `sync`: bytes that fit are taken during `write`, as TCP does. `late`: in a later step, as TLS
   * does; the chunk is read only then, so who reuses its buffer too early is found out. Default sync.
   */
  readonly writes?: 'sync' | 'late'
  /** When the connection is lost: at an instant, or after so many bytes arrived (both ways together). Default never. */
  readonly loseAt?: { readonly instant: Instant } | { readonly bytes: number }
  /** What losing it looks like: both ends get ECONNRESET, or nothing arrives any more. Default reset. */
  readonly loss?: 'reset' | 'silence'
  /** After a `data` listener returned, its chunk is overwritten, so who kept it uncopied is found out. Default true. */
  readonly overwriteRead?: boolean
}

const optionNames: OptionNames<LinkOptions> = {
  delay: true,
  jitter: true,
  bandwidth: true,
  splits: true,
  capacity: true,
  highWaterMark: true,
  allowHalfOpen: true,
  writes: true,
  loseAt: true,
  loss: true,
  overwriteRead: true,
}

/** A connection between two ends of one world. */
export class Link {
  readonly world: World
  readonly options: Required<Omit<LinkOptions, 'loseAt'>>
  /** Bytes that arrived at either end so far. */
  arrived: number
  /** Nothing arrives any more. */
  silent: boolean
  /** `arrived` at which the connection is lost. */
  readonly arrivalLimit: number
  readonly ends: readonly [LinkSocket, LinkSocket]

  /** Throws UsageError for an option that is unknown. */
  constructor(world: World, options: LinkOptions) {
    checkOptionNames('link', '', options, optionNames)
    this.world = world
    this.options = {
      delay: options.delay ?? 1,
      jitter: options.jitter ?? 0,
      bandwidth: options.bandwidth ?? Infinity,
      splits: options.splits ?? 'none',
      capacity: options.capacity ?? 262_144,
      highWaterMark: options.highWaterMark ?? 65_536,
      allowHalfOpen: options.allowHalfOpen ?? true,
      writes: options.writes ?? 'sync',
      loss: options.loss ?? 'reset',
      overwriteRead: options.overwriteRead ?? true,
    }
    this.arrived = 0
    this.silent = false
    const { loseAt } = options
    this.arrivalLimit = loseAt !== undefined && 'bytes' in loseAt ? loseAt.bytes : Infinity
    const there = new Pipe(this)
    const back = new Pipe(this)
    const a = new LinkSocket(this, there, back)
    const b = new LinkSocket(this, back, there)
    there.receiver = b
    there.sender = a
    back.receiver = a
    back.sender = b
    this.ends = [a, b]
    if (loseAt !== undefined && 'instant' in loseAt) world.at(loseAt.instant, () => this.lose())
  }

  /** The connection breaks now, in the way `loss` says. */
  lose(loss: 'reset' | 'silence' = this.options.loss): void {
    if (this.silent) return
    this.silent = true
    if (loss === 'silence') return
    for (const end of this.ends) end.receiveReset()
  }
}

/** See `World.link`. */
export function connectLink(world: World, options: LinkOptions = {}): [LinkSocket, LinkSocket] {
  const { ends } = new Link(world, options)
  return [ends[0], ends[1]]
}
