import { webSocketConformance } from './websocket/conformance.ts'
import { http2Tunnels } from './websocket/engines.ts'

webSocketConformance('WebSocket over h2', http2Tunnels)
