/** A network between a client and a server of QUIC: it loses, delays, doubles and reorders datagrams as its seed says, and it may be a NAT. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { Random } from 'heddle/testing'

/** How bad it is. All are chances of a datagram, either way. */
export interface RelayOptions {
  readonly seed?: number
  readonly loss?: number
  readonly duplicates?: number
  /** It comes up to 20 ms later than those behind it. */
  readonly late?: number
  /** Octets of a datagram; longer ones are lost. Default 1,500. */
  readonly mtu?: number
  /** What servers say is lost. */
  readonly mute?: boolean
}

/** An open relay. */
export interface Relay {
  /** What clients connect to. */
  readonly port: number
  /** Datagrams that came, and that were lost. */
  readonly counts: { came: number; lost: number }
  /** Clients have another port at the server from now on; what comes to the one they had is lost. */
  rebind(): Promise<void>
  /** What clients send goes to another port from now on. */
  turnTo(port: number): void
  /** Nothing goes through any more. */
  cut(): void
}

/** Opens a relay to the port `server` of 127.0.0.1 that ends with its test. */
export async function openRelay(t: TestContext, server: number, options: RelayOptions = {}): Promise<Relay> {
  const { loss = 0, duplicates = 0, late = 0, mtu = 1_500, mute = false } = options
  const random = new Random(options.seed ?? 1)
  const counts = { came: 0, lost: 0 }
  const front = await bound()
  let back = await bound()
  let client: number | undefined
  let port = server
  let isOpen = true

  function carry(bytes: Buffer, send: (bytes: Buffer) => void): void {
    counts.came++
    if (!isOpen || bytes.length > mtu || random.chance(loss)) {
      counts.lost++
      return
    }
    const deliver = (): void => {
      if (isOpen) send(bytes)
    }
    if (random.chance(late)) setTimeout(deliver, random.integer(1, 20))
    else deliver()
    if (random.chance(duplicates)) setTimeout(deliver, random.integer(1, 20))
  }

  front.on('message', (bytes, from) => {
    client = from.port
    carry(bytes, (copy) => back.send(copy, port, '127.0.0.1'))
  })
  const listen = (socket: Socket): void => {
    socket.on('message', (bytes) =>
      carry(bytes, (copy) => {
        if (client !== undefined && !mute) front.send(copy, client, '127.0.0.1')
      }),
    )
  }
  listen(back)
  const cut = (): void => {
    if (!isOpen) return
    isOpen = false
    front.close()
    back.close()
  }
  t.after(cut)
  return {
    port: front.address().port,
    counts,
    cut,
    turnTo: (other) => (port = other),
    rebind: async () => {
      const before = back
      back = await bound()
      listen(back)
      before.close()
    },
  }
}

async function bound(): Promise<Socket> {
  const socket = createSocket('udp4')
  // What the other end does not take is lost, as it would be elsewhere.
  socket.on('error', () => {})
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket
}
