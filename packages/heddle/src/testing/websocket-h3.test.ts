import { webSocketConformance } from './websocket/conformance.ts'
import { http3Protocol } from './h3-protocol.ts'

webSocketConformance('WebSocket over h3', http3Protocol)
