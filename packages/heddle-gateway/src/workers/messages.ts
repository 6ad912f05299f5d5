import type { Config } from '../config/index.ts'
import type { Snapshot } from '../metrics/index.ts'
import type { ListeningAddress } from '../service.ts'

/** From the primary to a worker. */
export type Order =
  | {
      readonly type: 'start'
      readonly config: Config
      readonly processes: number
      readonly ticketKeys: Uint8Array
      readonly quicKey: Uint8Array
      /** By listener's name. */
      readonly quicPorts: ReadonlyMap<string, number>
      readonly extendedConnect: boolean
    }
  | { readonly type: 'snapshot'; readonly id: number }
  | { readonly type: 'refresh' }
  | { readonly type: 'reload'; readonly id: number; readonly config: Config }
  /** Also brings the deadline of a drain under way forward. */
  | { readonly type: 'close'; readonly deadline: number }

/** From a worker to the primary. */
export type Report =
  | { readonly type: 'started'; readonly addresses: readonly ListeningAddress[] }
  | { readonly type: 'failed'; readonly code: string; readonly message: string }
  | { readonly type: 'snapshot'; readonly id: number; readonly snapshot: Snapshot }
  /** `problem`: why the worker goes by its old configuration; empty: it does not. */
  | { readonly type: 'reloaded'; readonly id: number; readonly problem: string }
  /** Everything is over; the last counts. */
  | { readonly type: 'closed'; readonly snapshot: Snapshot }
