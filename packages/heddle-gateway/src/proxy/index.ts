/** Forwarding: one request in, one request out, and back. */
export { Proxy, type ProxyOptions, type ProxyParts, type RequestRouter } from './proxy.ts'
