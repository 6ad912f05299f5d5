/** `(request, response)` listeners of Node's kind, and the frameworks built on them, over every version of HTTP. */
export { createServer, NodeServer, type NodeListenOptions, type NodeServerOptions } from './node-server.ts'
export { IncomingMessage } from './incoming-message.ts'
export type { MessageSocket } from './message-socket.ts'
export { nodeListener, type NodeListenerOptions, type RequestListener, type UpgradeListener } from './node-exchange.ts'
export { ServerResponse } from './server-response.ts'
export { UpgradeSocket } from './upgrade-socket.ts'
export type { HeaderInput, HeaderValue } from './header-fields.ts'
