import { BlockList, isIP } from 'node:net'
import { checkOptionNames, UsageError } from '../http/index.ts'
import type { ProxyOption } from './options.ts'

/** A proxy to reach origins through. */
export interface Proxy {
  /** TLS to the proxy itself. */
  readonly secure: boolean
  /** An IPv6 address without brackets. */
  readonly host: string
  readonly port: number
  /** Value of `proxy-authorization`, or undefined. */
  readonly authorization: string | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/** Which proxy leads to which origin, if any. */
export class ProxyRules {
  readonly #http: Proxy | undefined
  readonly #https: Proxy | undefined
  readonly #exempt: ProxyExemptions

  /** Throws UsageError for what is no proxy URL. */
  constructor(option: ProxyOption, environment: Environment) {
    if (option === 'env') {
      const all = variable(environment, 'all_proxy')
      // In a CGI script HTTP_PROXY holds a request's `Proxy` field, which anyone can send.
      const http = environment['http_proxy'] || (environment['REQUEST_METHOD'] === undefined ? environment['HTTP_PROXY'] : undefined) || all
      const https = variable(environment, 'https_proxy') || all
      this.#http = http ? parseProxy(http, 'the proxy of the environment') : undefined
      this.#https = https ? parseProxy(https, 'the proxy of the environment') : undefined
      this.#exempt = new ProxyExemptions(variable(environment, 'no_proxy') ?? '')
    } else if (option === 'none') {
      this.#http = this.#https = undefined
      this.#exempt = new ProxyExemptions('')
    } else {
      const isRule = typeof option === 'object' && !(option instanceof URL)
      if (isRule) checkOptionNames('Client', 'proxy', option, { url: true, noProxy: true })
      this.#http = this.#https = parseProxy(isRule ? option.url : option, 'the option proxy')
      this.#exempt = new ProxyExemptions((isRule ? option.noProxy : undefined) ?? '')
    }
  }

  /** True if there is a proxy for some origin. */
  get any(): boolean {
    return this.#http !== undefined || this.#https !== undefined
  }

  /** The proxy for an origin, or undefined: connect to it directly. `host` without brackets. */
  find(scheme: string, host: string, port: number): Proxy | undefined {
    const proxy = scheme === 'https' ? this.#https : this.#http
    return proxy === undefined || this.#exempt.has(host, port) ? undefined : proxy
  }
}

/**
 * The list of `NO_PROXY`: entries between commas or blanks. `*` is every host; `example.org` and
 * `.example.org` are that host and those below it; `10.0.0.0/8` and `fd00::/8` are address blocks;
 * any host or address may have a `:port` (an IPv6 address in brackets then).
 */
export class ProxyExemptions {
  readonly #suffixes: { readonly host: string; readonly port: number }[] = []
  readonly #blocks = new BlockList()
  #all = false

  constructor(list: string) {
    for (const word of list.split(/[\s,]+/)) if (word !== '') this.#add(word.toLowerCase())
  }

  /** True if no proxy is to be used for `host` (lower case, without brackets). */
  has(host: string, port: number): boolean {
    if (this.#all) return true
    const family = isIP(host)
    if (family !== 0 && this.#blocks.check(host, family === 6 ? 'ipv6' : 'ipv4')) return true
    return this.#suffixes.some((entry) => {
      if (entry.port !== 0 && entry.port !== port) return false
      return host === entry.host || (family === 0 && host.endsWith(`.${entry.host}`))
    })
  }

  #add(word: string): void {
    if (word === '*') {
      this.#all = true
      return
    }
    const [address = '', prefix] = word.split('/')
    const family = isIP(address)
    if (prefix !== undefined) {
      const bits = Number(prefix)
      // A block that makes no sense exempts nothing.
      if (family === 0 || !/^\d+$/.test(prefix) || bits > (family === 6 ? 128 : 32)) return
      this.#blocks.addSubnet(address, bits, family === 6 ? 'ipv6' : 'ipv4')
    } else if (family !== 0) {
      this.#blocks.addAddress(address, family === 6 ? 'ipv6' : 'ipv4')
    } else {
      const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(word) ?? []
      const host = (bracketed ?? plain ?? '').replace(/^\*?\./, '').replace(/\.$/, '')
      if (port === undefined && isIP(host) === 6) this.#blocks.addAddress(host, 'ipv6')
      else if (host !== '') this.#suffixes.push({ host, port: port === undefined ? 0 : Number(port) })
    }
  }
}

function variable(environment: Environment, name: string): string | undefined {
  return environment[name] || environment[name.toUpperCase()] || undefined
}

function parseProxy(text: string | URL, what: string): Proxy {
  // As curl takes it: without a scheme it is an HTTP proxy.
  const source = typeof text === 'string' && !/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? `http://${text}` : text
  if (typeof source === 'string' && !URL.canParse(source)) throw new UsageError(`${what} is not a URL`)
  const { protocol, hostname, port, username, password } = new URL(source)
  if (protocol !== 'http:' && protocol !== 'https:') throw new UsageError(`${what} must be http or https, not ${protocol.slice(0, -1)}`)
  const secure = protocol === 'https:'
  return {
    secure,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (secure ? 443 : 80) : Number(port),
    authorization: username === '' && password === '' ? undefined : basic(username, password),
  }
}

/** RFC 7617 §2: user-id and password as UTF-8. */
function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${percentDecoded(username)}:${percentDecoded(password)}`).toString('base64')}`
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
