import type { Http1Options } from '../h1/index.ts'
import type { DialOptions, DialProxy, DialTarget } from '../io/index.ts'
import type { Proxy } from './proxy.ts'
import type { Settings } from './settings.ts'

/** How connections to one origin are made. */
export interface Route {
  readonly target: DialTarget
  readonly options: DialOptions
  readonly http1: Http1Options
}

/** The way to an origin: directly, to a Unix socket, to a proxy, or through a proxy's tunnel. */
export function routeTo(origin: { readonly scheme: string; readonly host: string; readonly port: number }, settings: Settings): Route {
  const { socketPath, lookup, localAddress, family } = settings.options
  const { scheme, host, port } = origin
  const common: DialOptions = { clock: settings.clock, connectTimeout: settings.connectTimeout, lookup, localAddress, family }
  const secure = scheme === 'https'
  if (socketPath !== undefined) {
    // A socket's path names no host to check the certificate against.
    const tls = secure ? { ...settings.tls, servername: settings.tls.servername ?? host } : undefined
    return { target: { path: socketPath }, options: { ...common, tls }, http1: settings.http1 }
  }
  const proxy = settings.proxy.find(scheme, host, port)
  if (proxy === undefined) {
    return { target: { host, port }, options: { ...common, tls: secure ? settings.tls : undefined }, http1: settings.http1 }
  }
  if (secure) {
    return { target: { host, port }, options: { ...common, tls: settings.tls, proxy: tunnelBy(proxy) }, http1: settings.http1 }
  }
  return {
    target: { host: proxy.host, port: proxy.port },
    options: { ...common, tls: proxy.secure ? proxyTls : undefined, targetIsProxy: true },
    http1: { ...settings.http1, absoluteForm: true, proxyAuthorization: proxy.authorization },
  }
}

/** TLS to a proxy is not the origin's: neither its authorities nor our certificate apply. */
const proxyTls = Object.freeze({ alpn: ['http/1.1'] })

function tunnelBy(proxy: Proxy): DialProxy {
  return { host: proxy.host, port: proxy.port, authorization: proxy.authorization, tls: proxy.secure ? proxyTls : undefined }
}
