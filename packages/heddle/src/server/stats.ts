import type { Listener } from '../io/index.ts'
import type { Connections, ProtocolCensus, ProtocolTotals } from './connections.ts'
import type { ProtocolStats, ServerStats } from './options.ts'

/** All counts of a server. O(connections). */
export function statsOf(listener: Listener, connections: Connections): ServerStats {
  const { counters } = listener
  const { resets } = connections
  const census = connections.census()
  const http1 = protocolStats(connections.http1, census.http1)
  const http2 = protocolStats(connections.http2, census.http2)
  const { frames } = census.http2
  return {
    connections: listener.connections,
    idleConnections: census.idle,
    handshakes: listener.handshakes,
    exchanges: http1.exchanges + http2.exchanges,
    deadlines: census.deadlines,
    requests: http1.requests + http2.requests,
    accepted: counters.accepted,
    rejected: counters.refused + counters.handshakesRefused + connections.unspoken,
    handshakesFailed: counters.handshakesFailed,
    acceptErrors: counters.acceptErrors,
    drained: connections.drained,
    drainAbandoned: connections.drainAbandoned,
    drainedBytes: connections.drainedBytes,
    writes: http1.writes + http2.writes,
    bytesRead: http1.bytesRead + http2.bytesRead,
    bytesWritten: http1.bytesWritten + http2.bytesWritten,
    http1,
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
