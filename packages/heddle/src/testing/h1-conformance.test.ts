import { ClientConnection, ServerConnection } from '../h1/index.ts'
import { exchangeConformance } from './conformance.ts'
import { streamProtocol } from './conformance/stage.ts'

exchangeConformance(
  'h1',
  streamProtocol(
    'h1',
    65_536,
    (limits) => (info, handler, now) => new ClientConnection(info, handler, { limits }, now),
    (limits) => (info, handler, now) => new ServerConnection(info, handler, { limits, upgrades: ['conformance'] }, now),
  ),
)
