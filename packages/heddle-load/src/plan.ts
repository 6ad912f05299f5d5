import type { ArrivalKind } from './arrivals.ts'
import type { LoadKind, LoadProtocol, LoadTlsOptions } from './options.ts'

/** One request, ready to be sent. */
export interface PlannedRequest {
  readonly name: string
  readonly weight: number
  /** Where the connection goes: an http or https URL. */
  readonly origin: string
  readonly method: string
  readonly scheme: string
  /** What it asks for. */
  readonly authority: string
  readonly path: string
  /** Flat, names in lower case. */
  readonly fields: readonly string[]
  readonly body: Uint8Array | undefined
  /** The body was given as text. */
  readonly text: boolean
  readonly accept: Uint8Array
}

/** Everything that a load is, checked, and with all defaults: what one thread is given. Can be cloned. Times in ms. */
export interface Plan {
  readonly kind: LoadKind
  readonly protocol: LoadProtocol
  readonly requests: readonly PlannedRequest[]
  readonly connections: number
  readonly streams: number
  readonly inFlight: number
  /** Per second; 0: a closed loop. */
  readonly rate: number
  readonly arrivals: ArrivalKind
  readonly seed: number
  readonly pacing: 'spin' | 'timer'
  readonly maxBacklog: number
  /** Infinity: until `count`. */
  readonly duration: number
  /** Infinity: until `duration`. */
  readonly count: number
  readonly warmup: number
  readonly grace: number
  readonly timeout: number
  readonly connectTimeout: number
  readonly tls: LoadTlsOptions | undefined
  readonly socketPath: string | undefined
  readonly threads: number
  /** Which thread of them. */
  readonly thread: number
  readonly echo: 'same' | 'any'
  readonly deflate: boolean
}

/** What of `plan` each of its threads does. */
export function shares(plan: Plan): Plan[] {
  return Array.from({ length: plan.threads }, (_, thread) => {
    const share = (whole: number): number => Math.floor((whole * (thread + 1)) / plan.threads) - Math.floor((whole * thread) / plan.threads)
    return {
      ...plan,
      thread,
      connections: share(plan.connections),
      count: plan.count === Infinity ? Infinity : share(plan.count),
      rate: plan.rate / plan.threads,
      maxBacklog: share(plan.maxBacklog),
    }
  })
}
