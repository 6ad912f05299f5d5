import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelledError, CancelReason, HeddleError, NetworkError, PeerError, ProtocolError, TimeoutError } from '../http/index.ts'
import { RpcCode, rpcError } from './rpc-error.ts'

const reset = (wireCode: number, unprocessed = false): HeddleError => new PeerError('PEER_RESET', 'reset', { wireCode, unprocessed })

const cases: readonly (readonly [why: string, error: unknown, code: RpcCode])[] = [
  ['nobody listens', new NetworkError('CONNECT_FAILED', 'refused'), RpcCode.Unavailable],
  ['a name that is none', new NetworkError('DNS_FAILED', 'unknown'), RpcCode.Unavailable],
  ['a connection lost', new PeerError('PEER_CLOSED', 'closed'), RpcCode.Unavailable],
  ['a time limit', new TimeoutError('head', 'late'), RpcCode.DeadlineExceeded],
  ['no connection in time', new TimeoutError('connect', 'late'), RpcCode.Unavailable],
  ['a queue that is full', new HeddleError('QUEUE_FULL', 'full'), RpcCode.ResourceExhausted],
  ['REFUSED_STREAM', reset(0x7, true), RpcCode.Unavailable],
  ['CANCEL', reset(0x8), RpcCode.Canceled],
  ['ENHANCE_YOUR_CALM', reset(0xb), RpcCode.ResourceExhausted],
  ['INADEQUATE_SECURITY', reset(0xc), RpcCode.PermissionDenied],
  ['H3_REQUEST_REJECTED', reset(0x10b), RpcCode.Unavailable],
  ['H3_REQUEST_CANCELLED', reset(0x10c), RpcCode.Canceled],
  ['H3_EXCESSIVE_LOAD', reset(0x107), RpcCode.ResourceExhausted],
  ['H3_INTERNAL_ERROR', reset(0x102), RpcCode.Internal],
  ['INTERNAL_ERROR', reset(0x2), RpcCode.Internal],
  ['a code that nobody knows', reset(0x1234), RpcCode.Internal],
  ['a stream behind a GOAWAY', new PeerError('PEER_CLOSED', 'goaway', { unprocessed: true, wireCode: 0 }), RpcCode.Unavailable],
  ['a reset of TCP', new PeerError('PEER_RESET', 'reset'), RpcCode.Unavailable],
  ['a broken message', new ProtocolError('broken', 0, 'PROTOCOL_ERROR', { scope: 'stream' }), RpcCode.Internal],
  ['one that was cut', new PeerError('MESSAGE_TRUNCATED', 'cut'), RpcCode.Unavailable],
  ['a request that was given up', new CancelledError(CancelReason.Cancelled), RpcCode.Canceled],
  ['an error of the program', new RangeError('mine'), RpcCode.Unknown],
  ['something that is no error', 'text', RpcCode.Unknown],
]

for (const [why, error, code] of cases) {
  test(`${why} is code ${code} of gRPC, in the members that Connect-ES goes by`, () => {
    const told = rpcError(error) as Error & { code: number; rawMessage: string; metadata: Headers; details: unknown[] }
    assert.deepEqual([told.name, told.code, told.cause], ['ConnectError', code, error])
    assert.equal(told.rawMessage, error instanceof Error ? error.message : 'text')
    assert.ok(told.metadata instanceof Headers && Array.isArray(told.details))
  })
}
