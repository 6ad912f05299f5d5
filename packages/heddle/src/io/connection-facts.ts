import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Address, ConnectionInfo, TlsFacts } from '../http/index.ts'
import { ipEnd, unixEnd } from './addresses.ts'

let lastId = 0

/** An id for a connection of whatever kind: unique within the process. */
export function nextConnectionId(): number {
  return ++lastId
}

/** Facts about one socket of Node. The addresses are asked for at once: a closed socket has none. */
class SocketFacts implements ConnectionInfo {
  readonly id: number
  readonly remote: Address
  readonly tls: TlsFacts | undefined
  readonly #socket: Socket
  #local: Address | undefined

  constructor(socket: Socket, unixPath: string | undefined, server: boolean) {
    this.id = nextConnectionId()
    this.tls = socket instanceof TLSSocket ? new SocketTlsFacts(socket, server) : undefined
    this.#socket = socket
    if (unixPath === undefined) {
      this.remote = ipEnd(socket.remoteAddress, socket.remotePort, socket.remoteFamily)
      this.#local = undefined
    } else {
      this.remote = unixEnd(server ? '' : unixPath)
      this.#local = unixEnd(server ? unixPath : '')
    }
  }

  /** Costs a system call the first time, so it is made on demand. */
  get local(): Address {
    const socket = this.#socket
    this.#local ??= ipEnd(socket.localAddress, socket.localPort, socket.localFamily)
    return this.#local
  }
}

class SocketTlsFacts implements TlsFacts {
  readonly version: string
  readonly cipher: string
  readonly alpn: string | undefined
  readonly serverName: string | undefined
  readonly authorized: boolean
  readonly #socket: TLSSocket
  #peerCertificate: Uint8Array | undefined

  constructor(socket: TLSSocket, server: boolean) {
    this.version = socket.getProtocol() ?? ''
    this.cipher = socket.getCipher()?.name ?? ''
    this.alpn = alpnOf(socket)
    // On a client's socket Node keeps the name it sent in an own field, on a server's in `servername`.
    const name = (socket as { servername?: string | false | null }).servername
    this.serverName = typeof name === 'string' && name !== '' ? name : undefined
    this.authorized = socket.authorized
    this.#socket = socket
    // A client has just verified it; a server's handler may ask when the socket is gone, so only what was verified is kept.
    this.#peerCertificate = server && socket.authorized ? certificateOf(socket) : undefined
  }

  get peerCertificate(): Uint8Array | undefined {
    this.#peerCertificate ??= certificateOf(this.#socket)
    return this.#peerCertificate
  }
}

function certificateOf(socket: TLSSocket): Uint8Array | undefined {
  return socket.destroyed ? undefined : socket.getPeerX509Certificate()?.raw
}

/** What ALPN chose on a TLS socket, or undefined. */
export function alpnOf(socket: Socket): string | undefined {
  const chosen = socket instanceof TLSSocket ? socket.alpnProtocol : undefined
  return typeof chosen === 'string' && chosen !== '' ? chosen : undefined
}

/** The facts of a socket that connected. `unixPath`: it is a Unix socket. `server`: it was accepted. */
export function connectionFacts(socket: Socket, unixPath: string | undefined, server: boolean): ConnectionInfo {
  return new SocketFacts(socket, unixPath, server)
}
