import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Udp, UdpHandler, UdpOptions } from '../native/index.ts'
import type { UdpDriver } from './udp-driver.ts'

/** Addresses that have a port of their own at most: a machine may have thousands, for the services of others. */
const mostAddresses = 64

const nobody: UdpHandler = { onBatch() {}, onWritable() {}, onError() {} }

/**
 * Opens the ports of a server of UDP at `hostname`, by `open`: one, or for all addresses one for each that the
 * machine has now, and first one for those it may have later. An answer leaves from the address that was asked,
 * or the client does not know it, and a port for all addresses does not tell which that was. Rejects with the system's error.
 */
export async function openEvery(
  udp: Udp,
  hostname: string | undefined,
  port: number,
  reusePort: boolean,
  open: (options: UdpOptions) => Promise<UdpDriver>,
): Promise<readonly UdpDriver[]> {
  const host = await addressFor(hostname)
  // Only Linux takes the most special of the ports that a datagram could be for.
  if ((host !== undefined && host !== '::' && host !== '0.0.0.0') || process.platform !== 'linux')
    return [await open({ host, port, reusePort })]
  // Ports that others may share find no fault with each other, so whether it is free is found out first.
  const probe = await udp.bind({ host, port, reusePort }, nobody)
  const { local } = probe
  await probe.close()
  const drivers = [await open({ host, port: local.port, reusePort: true })]
  for (const address of ownAddresses(local.family === 6)) {
    try {
      drivers.push(await open({ host: address, port: local.port, reusePort: true, ipv6Only: true }))
    } catch {
      // One that is not ready yet, or has gone: the first port has what comes there.
    }
  }
  return drivers
}

/** A name as the address that TCP would listen at. Rejects with the system's error. */
async function addressFor(hostname: string | undefined): Promise<string | undefined> {
  if (hostname === undefined || hostname === '') return undefined
  return isIP(hostname) === 0 ? (await lookup(hostname)).address : hostname
}

/** The addresses of this machine. */
function ownAddresses(withIpv6: boolean): string[] {
  const addresses: string[] = []
  for (const [name, ends] of Object.entries(interfaces())) {
    for (const { address, family, scopeid } of ends ?? []) {
      if (family === 'IPv4') addresses.push(address)
      else if (withIpv6) addresses.push(scopeid === undefined || scopeid === 0 ? address : `${address}%${name}`)
    }
  }
  return addresses.length > mostAddresses ? [] : addresses
}

/** None where a process may not know them. */
function interfaces(): ReturnType<typeof networkInterfaces> {
  try {
    return networkInterfaces()
  } catch {
    return {}
  }
}
