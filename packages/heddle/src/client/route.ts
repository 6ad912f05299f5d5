import type { Http1Options } from '../h1/index.ts'
import type { DialOptions, DialProxy, DialTarget, QuicDialOptions } from '../io/index.ts'
import { chosenProtocol, type ClientProtocol } from './protocols.ts'
import type { Proxy } from './proxy.ts'
import type { Settings } from './settings.ts'

/** How connections to one origin are made, and what may be spoken on them. */
export interface Route {
  readonly target: DialTarget
  readonly options: DialOptions
  /** The same, for a connection that has to speak HTTP/1.1. */
  readonly http1Options: DialOptions
  /** How connections by QUIC are made; undefined: none are. */
  readonly quic: QuicDialOptions | undefined
  /** Connections are made by QUIC, and not otherwise. */
  readonly quicOnly: boolean
  readonly http1: Http1Options
  /** What may be spoken. */
  readonly protocols: readonly ClientProtocol[]
  /** What is spoken; undefined: ALPN will tell. */
  readonly protocol: ClientProtocol | undefined
  /** What is spoken on a connection on which ALPN chose `alpn`; undefined: nothing that may be. `http1`: it had to be HTTP/1.1. */
  spokenOn(alpn: string | undefined, http1: boolean): ClientProtocol | undefined
}

/** The way to an origin: directly, to a Unix socket, to a proxy, or through a proxy's tunnel. */
export function routeTo(origin: { readonly scheme: string; readonly host: string; readonly port: number }, settings: Settings): Route {
  const { socketPath, lookup, localAddress, family } = settings.options
  const { scheme, host, port } = origin
  const common: DialOptions = { clock: settings.clock, connectTimeout: settings.connectTimeout, lookup, localAddress, family }
  const { http1 } = settings.engines
  if (scheme === 'https') {
    const { tls, tlsHttp1, protocols } = settings
    const proxy = socketPath === undefined ? settings.proxy.find(scheme, host, port) : undefined
    const to = { ...common, proxy: proxy === undefined ? undefined : tunnelBy(proxy) }
    // A socket's path names no host to check the certificate against.
    const servername = socketPath === undefined ? undefined : (tls.servername ?? host)
    const named = servername === undefined ? { tls, tlsHttp1 } : { tls: { ...tls, servername }, tlsHttp1: { ...tlsHttp1, servername } }
    const { quic } = settings
    return {
      // A proxy of CONNECT carries TCP.
      quic:
        quic === undefined || proxy !== undefined
          ? undefined
          : { ...common, ...quic, servername: tls.servername ?? host, unref: settings.loopHold !== undefined },
      quicOnly: protocols.length === 1 && protocols[0] === 'h3',
      target: socketPath === undefined ? { host, port } : { path: socketPath },
      options: { ...to, tls: named.tls },
      http1Options: { ...to, tls: named.tlsHttp1 },
      http1,
      protocols,
      protocol: protocols.length === 1 ? protocols[0] : undefined,
      spokenOn: (alpn) => chosenProtocol(alpn, protocols),
    }
  }
  const proxy = settings.proxy.find(scheme, host, port)
  if (proxy === undefined) {
    const target = socketPath === undefined ? { host, port } : { path: socketPath }
    const { h2c, protocols } = settings
    if (!h2c) return { ...onlyHttp1, target, options: common, http1Options: common, http1 }
    const spokenOn = (_alpn: string | undefined, http1: boolean): ClientProtocol => (http1 ? 'h1' : 'h2')
    return { ...onlyHttp1, target, options: common, http1Options: common, http1, protocols, protocol: 'h2', spokenOn }
  }
  const options = { ...common, tls: proxy.secure ? proxyTls : undefined, targetIsProxy: true }
  return {
    target: { host: proxy.host, port: proxy.port },
    options,
    http1Options: options,
    http1: { ...http1, absoluteForm: true, proxyAuthorization: proxy.authorization },
    ...onlyHttp1,
  }
}

const onlyHttp1: Pick<Route, 'protocols' | 'protocol' | 'spokenOn' | 'quic' | 'quicOnly'> = {
  protocols: ['h1'],
  protocol: 'h1',
  spokenOn: () => 'h1',
  quic: undefined,
  quicOnly: false,
}

/** TLS to a proxy is not the origin's: neither its authorities nor our certificate apply. */
const proxyTls = Object.freeze({ alpn: ['http/1.1'] })

function tunnelBy(proxy: Proxy): DialProxy {
  return { host: proxy.host, port: proxy.port, authorization: proxy.authorization, tls: proxy.secure ? proxyTls : undefined }
}
