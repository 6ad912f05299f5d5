import { createHash } from 'node:crypto'
import { ClientConnection as Http1Client, ServerConnection as Http1Server } from '../../h1/index.ts'
import { ClientConnection as Http2Client, ServerConnection as Http2Server } from '../../h2/index.ts'
import { streamProtocol, type ConformanceProtocol } from '../conformance/stage.ts'

function websocketAccept(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
}

/** HTTP/1.1, with Upgrade to WebSocket. */
export const http1Tunnels: ConformanceProtocol = streamProtocol(
  'h1',
  65_536,
  (limits) => (info, handler, now) =>
    new Http1Client(info, handler, { limits, websocketAccept, websocketKey: () => 'dGhlIHNhbXBsZSBub25jZQ==' }, now),
  (limits) => (info, handler, now) => new Http1Server(info, handler, { limits, websocketAccept, upgrades: ['websocket'] }, now),
)

/** Small enough for windows to fill up. */
const windows = { streamWindow: 65_536, maxWindow: 65_536 }

/** HTTP/2, with extended CONNECT. */
export const http2Tunnels: ConformanceProtocol = streamProtocol(
  'h2',
  65_536,
  (limits) => (info, handler, now) => new Http2Client(info, handler, { limits: { ...windows, ...limits } }, now),
  (limits) => (info, handler, now) => new Http2Server(info, handler, { limits: { ...windows, ...limits }, extendedConnect: true }, now),
)
