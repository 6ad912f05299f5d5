import { ClientConnection, ServerConnection } from '../h2/index.ts'
import { exchangeConformance } from './conformance.ts'
import { streamProtocol } from './conformance/stage.ts'

const window = 65_536
const windows = { streamWindow: window, maxWindow: window }
exchangeConformance(
  'h2',
  streamProtocol(
    'h2',
    window,
    (limits) => (info, handler, now) => new ClientConnection(info, handler, { limits: { ...windows, ...limits } }, now),
    (limits) => (info, handler, now) =>
      new ServerConnection(info, handler, { extendedConnect: true, limits: { ...windows, ...limits } }, now),
  ),
)
