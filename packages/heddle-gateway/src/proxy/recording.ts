import { ProtocolError, TimeoutError, type Exchange, type Head, type HeddleError } from 'heddle/http'
import type { RequestRecord } from '../record.ts'
import { statusOfHttp, statusOfReason } from './grpc.ts'
import type { Reason } from './reason.ts'

/** The record of a request that begins. */
export function startRecord(exchange: Exchange, listener: string, head: Head, startedAt: number): RequestRecord {
  return {
    startedAt,
    listener,
    route: '',
    cluster: '',
    endpoint: '',
    remoteAddress: exchange.connection.remote.address,
    protocol: exchange.protocol,
    upstreamProtocol: '',
    method: head.protocol === '' ? head.method : 'GET',
    authority: head.authority,
    path: head.path,
    status: 0,
    reason: '',
    attempts: 0,
    requestSize: 0,
    responseSize: 0,
    duration: 0,
    timeToHead: -1,
    upstreamLatency: -1,
    upstreamDuration: -1,
    tunnel: false,
    grpc: undefined,
    grpcStatus: -1,
  }
}

/** The client's exchange ended with `error`: says so where nothing was said yet. */
export function recordClientError(record: RequestRecord, error: HeddleError): void {
  if (error instanceof ProtocolError) {
    record.reason ||= 'client_error'
    if (record.status === 0) record.status = error.status
  } else if (error instanceof TimeoutError) {
    record.reason ||= 'client_timeout'
    if (record.status === 0 && error.phase === 'body') record.status = 408
  } else if (error.code === 'HANDLER_FAILED') {
    record.reason ||= 'internal_error'
    if (record.status === 0) record.status = 500
  } else record.reason ||= error.code === 'SHUTDOWN' ? 'shutdown' : 'client_closed'
}

/** The request is over. Durations are ms; `upstreamDuration` is -1 if there is no attempt to tell of. */
export function finishRecord(record: RequestRecord, duration: number, upstreamDuration: number): void {
  if (record.grpc !== undefined && record.grpcStatus < 0) {
    record.grpcStatus = record.reason === '' ? statusOfHttp(record.status) : statusOfReason(record.reason as Reason)
  }
  record.duration = duration
  record.upstreamDuration = upstreamDuration
}
