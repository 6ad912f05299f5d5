import { connect, isIP, type LookupFunction, type OnReadOpts, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { HeddleError, NetworkError, TimeoutError, UsageError, type ConnectionInfo, type StreamEngine } from '../http/index.ts'
import { hostAndPort, interleave, literalAddress, type IpAddress } from './addresses.ts'
import { Alarm, type Clock } from './clock.ts'
import { openTunnel } from './connect-proxy.ts'
import { alpnOf, connectionFacts } from './connection-facts.ts'
import { connectError, dnsError, proxyError, unprocessed } from './dial-errors.ts'
import { describe } from './errors.ts'
import { Race } from './happy-eyeballs.ts'
import { resolveHost } from './resolve.ts'
import { sharedReads, shareReads } from './shared-reads.ts'
import type { SocketLike } from './socket.ts'
import { StreamDriver, type DriverOptions } from './tcp-driver.ts'
import { secure, type TlsClientOptions } from './tls-client.ts'

/** Where to connect: a host name or IP address with a port, or the path of a Unix socket. */
export type DialTarget = { readonly host: string; readonly port: number } | { readonly path: string }

/** A proxy that opens tunnels by CONNECT (RFC 9110 §9.3.6). */
export interface DialProxy {
  readonly host: string
  readonly port: number
  /** Value of `proxy-authorization`, such as `Basic …`. */
  readonly authorization?: string | undefined
  /** TLS to the proxy itself. */
  readonly tls?: TlsClientOptions | undefined
}

/** How {@link dial} connects. */
export interface DialOptions {
  /** Where time comes from. */
  readonly clock: Clock
  /** Name lookup, connection, the proxy's answer and TLS together, ms. Default 10000. */
  readonly connectTimeout?: number | undefined
  /** In place of `dns.lookup`; called with `{ all: true }`. */
  readonly lookup?: LookupFunction | undefined
  /** 4 or 6: use this family only. Default 0: both. */
  readonly family?: 0 | 4 | 6 | undefined
  /** TLS with the target. Undefined: plain. */
  readonly tls?: TlsClientOptions | undefined
  /** The local IP address to connect from. */
  readonly localAddress?: string | undefined
  /** Reach the target through this proxy's tunnel; the proxy then resolves the target's name. */
  readonly proxy?: DialProxy | undefined
  /** True: the target itself is a proxy, for requests in absolute-form: what fails on the way to it is PROXY_FAILED. Default false. */
  readonly targetIsProxy?: boolean | undefined
  /** RFC 8305 §5: ms between two attempts. Default 250. */
  readonly attemptDelay?: number | undefined
}

/** A connection that stands, TLS included. */
export interface Dialled {
  readonly socket: SocketLike
  readonly info: ConnectionInfo
  /** What TLS agreed on (`h2`, `http/1.1`), or undefined. */
  readonly alpn: string | undefined
  /** Puts `engine` on it and starts reading. Call it, or `socket.destroy()`. */
  attach(engine: StreamEngine, options?: DriverOptions): StreamDriver
}

/**
 * Connects. Throws UsageError for a target or local address that cannot be. `done` is called once,
 * never before `dial` returned, and not after `cancel`. Every error it gets is a HeddleError with
 * `unprocessed: true`: DNS_FAILED, CONNECT_FAILED, TLS_FAILED or CONNECT_TIMEOUT; PROXY_FAILED for all
 * that fails on the way to a proxy and at it, but a time limit.
 */
export function dial(
  target: DialTarget,
  options: DialOptions,
  done: (error: HeddleError | undefined, dialled: Dialled | undefined) => void,
): { cancel(): void } {
  return new Dialling(target, options, done)
}

type Phase = 'looking up the name' | 'connecting' | 'asking the proxy' | 'shaking hands for TLS'

/** RFC 1122 §4.2.3.6: probes of an idle connection begin after this many ms. */
const keepAliveDelay = 60_000

/** Where the bytes of a socket with `onread` go; before somebody is attached it is paused. */
interface ReadTarget {
  driver: StreamDriver | undefined
}

class Dialling {
  readonly #target: DialTarget
  readonly #options: DialOptions
  readonly #done: (error: HeddleError | undefined, dialled: Dialled | undefined) => void
  readonly #alarm: Alarm
  #phase: Phase
  /** Ends what runs now. */
  #cancelPhase: () => void
  #over: boolean

  constructor(target: DialTarget, options: DialOptions, done: (error: HeddleError | undefined, dialled: Dialled | undefined) => void) {
    this.#target = target
    this.#options = options
    this.#done = done
    this.#alarm = new Alarm(() => this.#timedOut())
    this.#phase = 'looking up the name'
    this.#cancelPhase = nothing
    this.#over = false
    checkTarget(target, options)
    const { clock } = options
    clock.set(this.#alarm, clock.now() + (options.connectTimeout ?? 10_000))
    if ('path' in target) this.#connectPath(target.path)
    else this.#lookup((options.proxy ?? target).host)
  }

  /** Ends it, whatever it is doing; `done` is not called. */
  cancel(): void {
    if (this.#over) return
    this.#finish()
    this.#cancelPhase()
  }

  /** For people: what is dialled. */
  get #name(): string {
    const target = this.#target
    const name = 'path' in target ? target.path : hostAndPort(target.host, target.port)
    return this.#options.targetIsProxy === true ? `the proxy ${name}` : name
  }

  /** The proxy that is looked up and connected to, or undefined: the target itself is. */
  get #proxyName(): string | undefined {
    const { proxy, targetIsProxy } = this.#options
    if (proxy !== undefined) return hostAndPort(proxy.host, proxy.port)
    return targetIsProxy === true && !('path' in this.#target) ? hostAndPort(this.#target.host, this.#target.port) : undefined
  }

  #lookup(host: string): void {
    const { lookup, family = 0 } = this.#options
    resolveHost(host, lookup, family, (error, addresses) => {
      if (this.#over) return
      if (error !== undefined) this.#fail(dnsError(host, error, this.#proxyName))
      else this.#connect(addresses)
    })
  }

  #connect(addresses: readonly IpAddress[]): void {
    const target = this.#options.proxy ?? (this.#target as { host: string; port: number })
    // TLS and tunnels take the bytes from elsewhere.
    const reads = this.#options.tls === undefined && this.#options.proxy === undefined ? { driver: undefined } : undefined
    this.#phase = 'connecting'
    const race = new Race<Socket>(
      interleave(addresses),
      this.#options.clock,
      this.#options.attemptDelay ?? 250,
      ({ address }, done) => attempt(() => connectTo(address, target.port, this.#options, reads), done),
      (failures, socket) => {
        if (socket === undefined) this.#fail(connectError(hostAndPort(target.host, target.port), failures, this.#proxyName))
        else this.#connected(socket, undefined, reads)
      },
    )
    this.#cancelPhase = () => race.cancel()
    race.start()
  }

  #connectPath(path: string): void {
    this.#phase = 'connecting'
    const reads: ReadTarget | undefined = this.#options.tls === undefined ? { driver: undefined } : undefined
    const { cancel } = attempt(
      () => connect({ path, allowHalfOpen: true, ...onread(reads) }),
      (error, socket) => {
        if (socket === undefined)
          this.#fail(new NetworkError('CONNECT_FAILED', `no connection to ${path}: ${describe(error)}`, unprocessed(error)))
        else this.#connected(socket, path, reads)
      },
    )
    this.#cancelPhase = cancel
  }

  #connected(socket: Socket, path: string | undefined, reads: ReadTarget | undefined): void {
    const { proxy, tls } = this.#options
    if (proxy !== undefined && path === undefined) return this.#proxy(socket, proxy)
    if (tls !== undefined) this.#secure(socket, tls, path)
    else this.#succeed(socket, path, reads)
  }

  #proxy(socket: Socket, proxy: DialProxy): void {
    if (proxy.tls === undefined) return this.#tunnel(socket, proxy)
    this.#phase = 'shaking hands for TLS'
    this.#secureWith(socket, proxy, { alpn: ['http/1.1'], ...proxy.tls }, true, (secured) => this.#tunnel(secured, proxy))
  }

  #tunnel(socket: Socket, proxy: DialProxy): void {
    this.#phase = 'asking the proxy'
    const { clock, tls } = this.#options
    const { host, port } = this.#target as { host: string; port: number }
    const asked = openTunnel(socket, clock, hostAndPort(host, port), proxy, (error) => {
      if (this.#over) return
      if (error !== undefined) this.#fail(error)
      else if (tls !== undefined) this.#secure(socket, tls, undefined)
      else this.#succeed(socket, undefined, undefined)
    })
    this.#cancelPhase = () => asked.cancel()
  }

  #secure(socket: Socket, tls: TlsClientOptions, path: string | undefined): void {
    this.#phase = 'shaking hands for TLS'
    const target = this.#target
    const peer = 'path' in target ? { host: 'localhost', port: 0 } : target
    this.#secureWith(socket, peer, tls, this.#options.targetIsProxy === true, (secured) => this.#succeed(secured, path, undefined))
  }

  #secureWith(
    socket: Socket,
    peer: { host: string; port: number },
    tls: TlsClientOptions,
    isProxy: boolean,
    next: (socket: TLSSocket) => void,
  ): void {
    const host = literalAddress(peer.host)?.address ?? peer.host
    const fail = (error: HeddleError): void =>
      this.#fail(isProxy ? proxyError(hostAndPort(host, peer.port), error.message, error.cause) : error)
    try {
      const shaking = secure(socket, host, peer.port, tls, (error, secured) => {
        if (this.#over) return
        if (secured === undefined) fail(error as HeddleError)
        else next(secured)
      })
      this.#cancelPhase = () => shaking.cancel()
    } catch (cause) {
      // Options node:tls cannot use, such as a certificate that is none.
      socket.destroy()
      fail(new NetworkError('TLS_FAILED', `TLS with ${host} cannot be begun: ${describe(cause)}`, unprocessed(cause)))
    }
  }

  #succeed(socket: Socket, path: string | undefined, reads: ReadTarget | undefined): void {
    this.#finish()
    this.#done(undefined, new DialledSocket(socket, path, reads, this.#options.clock))
  }

  #fail(error: HeddleError): void {
    if (this.#over) return
    this.#finish()
    // Some failures are known at once; `done` comes later all the same.
    this.#options.clock.soon(() => this.#done(error, undefined))
  }

  #timedOut(): void {
    if (this.#over) return
    const { connectTimeout = 10_000 } = this.#options
    const proxy = this.#options.proxy === undefined ? '' : ` by the proxy ${this.#proxyName}`
    const message = `no connection to ${this.#name}${proxy} within ${connectTimeout} ms (${this.#phase})`
    this.#cancelPhase()
    this.#fail(new TimeoutError('connect', message, { unprocessed: true }))
  }

  #finish(): void {
    this.#over = true
    this.#options.clock.clear(this.#alarm)
  }
}

class DialledSocket implements Dialled {
  readonly socket: SocketLike
  readonly info: ConnectionInfo
  readonly alpn: string | undefined
  readonly #nodeSocket: Socket
  readonly #clock: Clock
  readonly #reads: ReadTarget | undefined

  constructor(socket: Socket, path: string | undefined, reads: ReadTarget | undefined, clock: Clock) {
    this.socket = socket
    this.#nodeSocket = socket
    this.info = connectionFacts(socket, path, false)
    this.alpn = alpnOf(socket)
    this.#clock = clock
    this.#reads = reads
  }

  attach(engine: StreamEngine, options?: DriverOptions): StreamDriver {
    const reads = this.#reads
    const pushed = reads !== undefined || shareReads(this.#nodeSocket, (byteCount, buffer) => driver.onRead(byteCount, buffer))
    const driver = new StreamDriver(this.socket, this.#clock, pushed ? { ...options, pushed } : options)
    if (reads !== undefined) reads.driver = driver
    driver.attach(engine)
    return driver
  }
}

/** One socket from `begin` to connected or failed. */
function attempt(begin: () => Socket, done: (error: Error | undefined, socket: Socket | undefined) => void): { cancel(): void } {
  const socket = begin()
  // Nothing is read before an engine is there, and a peer that sends early waits in the kernel.
  socket.pause()
  const failed = (error: Error): void => {
    socket.destroy()
    done(error, undefined)
  }
  socket.once('error', failed)
  socket.once('connect', () => {
    socket.off('error', failed)
    socket.on('error', nothing)
    done(undefined, socket)
  })
  return {
    cancel: () => {
      socket.off('error', failed)
      socket.on('error', nothing)
      socket.destroy()
    },
  }
}

function connectTo(address: string, port: number, options: DialOptions, reads: ReadTarget | undefined): Socket {
  return connect({
    host: address,
    port,
    ...(options.localAddress === undefined ? {} : { localAddress: options.localAddress }),
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveDelay,
    autoSelectFamily: false,
    ...onread(reads),
  })
}

function onread(reads: ReadTarget | undefined): { onread?: OnReadOpts } {
  return reads === undefined ? {} : { onread: sharedReads((byteCount, buffer) => reads.driver?.onRead(byteCount, buffer) ?? false) }
}

function checkTarget(target: DialTarget, { proxy, localAddress }: DialOptions): void {
  if ('path' in target) {
    if (target.path === '') throw new UsageError('the path of the Unix socket is empty')
    return
  }
  for (const { host, port } of proxy === undefined ? [target] : [target, proxy]) {
    if (host === '') throw new UsageError('the host to connect to is empty')
    if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new UsageError(`${port} is no port`)
  }
  if (localAddress !== undefined && isIP(localAddress) === 0) throw new UsageError(`the local address ${localAddress} is no IP address`)
}

function nothing(): void {}
