import { webSocketConformance } from './websocket/conformance.ts'
import { http1Tunnels } from './websocket/engines.ts'

webSocketConformance('WebSocket over h1', http1Tunnels)
