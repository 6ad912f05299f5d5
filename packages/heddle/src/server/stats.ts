import type { Listener, QuicListener } from '../io/index.ts'
import type { Connections, ProtocolCensus, ProtocolTotals } from './connections.ts'
import type { ProtocolStats, ServerStats } from './options.ts'

const none = { accepted: 0, refused: 0, handshakesRefused: 0, handshakesFailed: 0, acceptErrors: 0 }

/** All counts of a server. O(connections). */
export function statsOf(listener: Listener | undefined, quic: QuicListener | undefined, connections: Connections): ServerStats {
  const tcp = listener?.counters ?? none
  const udp = quic?.counters ?? none
  const { resets, http3Resets } = connections
  const census = connections.census()
  const http1 = protocolStats(connections.http1, census.http1)
  const http2 = protocolStats(connections.http2, census.http2)
  const { sent = 0, sendCalls = 0 } = quic?.datagrams ?? {}
  const { bytesRead = 0, bytesWritten = 0 } = quic ?? {}
  const http3 = {
    ...protocolStats(connections.http3, census.http3),
    writes: sendCalls,
    datagrams: sent,
    bytesRead,
    bytesWritten,
    resetsSent: http3Resets.sent,
    resetsReceived: http3Resets.received,
  }
  const { frames } = census.http2
  return {
    connections: (listener?.connections ?? 0) + (quic?.connections ?? 0),
    idleConnections: census.idle,
    handshakes: (listener?.handshakes ?? 0) + (quic?.handshakes ?? 0),
    exchanges: http1.exchanges + http2.exchanges + http3.exchanges,
    deadlines: census.deadlines,
    requests: http1.requests + http2.requests + http3.requests,
    accepted: tcp.accepted + udp.accepted,
    rejected: tcp.refused + tcp.handshakesRefused + connections.unspoken + udp.refused + udp.handshakesRefused,
    handshakesFailed: tcp.handshakesFailed + udp.handshakesFailed,
    acceptErrors: tcp.acceptErrors,
    drained: connections.drained,
    drainAbandoned: connections.drainAbandoned,
    drainedBytes: connections.drainedBytes,
    writes: http1.writes + http2.writes + http3.writes,
    bytesRead: http1.bytesRead + http2.bytesRead + http3.bytesRead,
    bytesWritten: http1.bytesWritten + http2.bytesWritten + http3.bytesWritten,
    http1,
    http3,
    http2: {
      ...http2,
      frames,
      framesPerWrite: http2.writes === 0 ? 0 : frames / http2.writes,
      resetsSent: resets.sent,
      resetsReceived: resets.received,
    },
  }
}

function protocolStats({ accepted, requests, counters }: ProtocolTotals, { connections, exchanges }: ProtocolCensus): ProtocolStats {
  const { writes, bytesRead, bytesWritten } = counters
  return { connections, accepted, exchanges, requests, writes, bytesRead, bytesWritten }
}
