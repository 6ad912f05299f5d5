/** Forwarding: one request in, one request out, and back. */
export { Proxy, type ProxyOptions, type RequestRouter } from './proxy.ts'
