/** The client: a pool of connections per origin, raw exchanges on it, and `fetch` on top of those. */
export { Client } from './client.ts'
export type { FetchInit, FetchInput, InformationalResponse } from './fetch-init.ts'
export { fetch } from './fetch-shared.ts'
export type { ClientOptions, ClientTlsOptions, Dialler, ExchangeOptions, ProxyOption } from './options.ts'
export type { Origin } from './origin.ts'
export type { ClientProtocol } from './protocols.ts'
export type { ClientStats, Http2Counts, OriginStats, PoolCounts, ProtocolCounts } from './stats.ts'
export type { ClientExchangeHandler, Ticket } from './ticket.ts'
