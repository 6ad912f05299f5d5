import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import type { Config, ListenerConfig } from '../config/index.ts'
import { listenError } from '../listen-error.ts'

/**
 * Sees that the UDP ports of HTTP/3 are free before workers share them, for then the system would not notice that
 * another program has one. Returns, by listener's name, ports for those that listen by UDP alone and shall have any
 * free one: it must be the same in all workers. Rejects with a {@link ListenError}.
 */
export async function claimUdpPorts({ listeners }: Config): Promise<Map<string, number>> {
  const ports = new Map<string, number>()
  for (const listener of listeners) {
    if (!listener.protocols.includes('h3')) continue
    const alone = listener.protocols.every((version) => version === 'h3')
    // With a TCP port beside it, it has that number, and workers look for one that is free in both.
    if (listener.port === 0 && !alone) continue
    const port = await tryPort(listener).catch((error: unknown) => {
      throw listenError(error, `listener ${listener.name}`, listener.host, listener.port, true)
    })
    if (listener.port === 0) ports.set(listener.name, port)
  }
  return ports
}

/** Opens the port, and lets go of it. */
async function tryPort({ host, port }: ListenerConfig): Promise<number> {
  const { address, family } = await lookup(host)
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4')
  try {
    return await new Promise<number>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind({ port, address, exclusive: true }, () => resolve(socket.address().port))
    })
  } finally {
    socket.close()
  }
}
