import type { WebSocketCase } from './case.ts'
import { deflateChapters } from './cases-deflate.ts'
import { framingChapters } from './cases-framing.ts'
import { sizeChapters } from './cases-size.ts'
import { textChapters } from './cases-text.ts'

/** What every WebSocket must do, for both roles, over any transport. */
export const webSocketCases: readonly WebSocketCase[] = [...framingChapters, ...textChapters, ...sizeChapters, ...deflateChapters]
