import { grpcStatusNames } from 'heddle/http'
import type { GrpcCall, RequestRecord } from '../record.ts'
import type { HistogramFamily, HistogramSeries, Labels } from './family.ts'

/** Methods that get time series of their own, in one process. */
export const methodLimit = 200
const unknown = 2
const unimplemented = 12
const other: GrpcCall = { service: '_OTHER', method: '_OTHER' }

/**
 * The methods that time series may be named by. Paths come from clients, who can invent any number of
 * them; a method counts as real once an upstream has answered it with anything but UNIMPLEMENTED.
 */
export class MethodNames {
  /** Paths. */
  readonly #known = new Set<string>()

  /** True if the call of `record` may have series of its own. */
  admits({ path, reason, grpcStatus }: RequestRecord): boolean {
    if (this.#known.has(path)) return true
    if (reason !== '' || grpcStatus === unimplemented || path.includes('?') || this.#known.size >= methodLimit) return false
    this.#known.add(path)
    return true
  }
}

/** gRPC calls on one route of one listener: a histogram by method and status. */
export class CallTraffic {
  readonly #family: HistogramFamily
  readonly #names: MethodNames
  readonly #labels: Labels
  /** By path, then by status. */
  readonly #byPath = new Map<string, (HistogramSeries | undefined)[]>()
  readonly #others: (HistogramSeries | undefined)[] = []

  constructor(family: HistogramFamily, names: MethodNames, labels: Labels) {
    this.#family = family
    this.#names = names
    this.#labels = labels
  }

  /** The series that the call of `record` belongs to. */
  find(record: RequestRecord, call: GrpcCall): HistogramSeries {
    const { path } = record
    const status = record.grpcStatus in grpcStatusNames ? record.grpcStatus : unknown
    const known = this.#byPath.get(path)
    if (known !== undefined) return (known[status] ??= this.#make(call, status))
    if (!this.#names.admits(record)) return (this.#others[status] ??= this.#make(other, status))
    const series: (HistogramSeries | undefined)[] = []
    this.#byPath.set(path, series)
    return (series[status] ??= this.#make(call, status))
  }

  #make({ service, method }: GrpcCall, status: number): HistogramSeries {
    return this.#family.series([
      ...this.#labels,
      ['rpc_system', 'grpc'],
      ['rpc_service', service],
      ['rpc_method', method],
      ['rpc_grpc_status_code', String(status)],
    ])
  }
}
