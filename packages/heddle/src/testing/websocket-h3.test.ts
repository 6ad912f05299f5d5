import { http3OverQuic, unavailable } from './h3-over-quic.ts'
import { http3Protocol } from './h3-protocol.ts'
import { webSocketConformance } from './websocket/conformance.ts'

webSocketConformance('WebSocket over h3', http3Protocol)
if (unavailable === false) webSocketConformance('WebSocket over h3 over QUIC', http3OverQuic, { seeds: 1 })
