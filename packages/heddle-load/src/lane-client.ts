import { Client, type ClientOptions, type Dialler } from 'heddle/client'
import { Alarm, dial, type Clock } from 'heddle/io'
import type { Plan, PlannedRequest } from './plan.ts'

/** What a load runs in: the system, or the seeded world of tests. */
export interface Surroundings {
  readonly clock: Clock
  /** Opens connections. */
  readonly connect: Dialler | undefined
}

/** A client that has one connection to each origin, so that there are as many as were asked for. */
export function laneClient(plan: Plan, { clock, connect }: Surroundings): Client {
  const { protocol, tls = {}, kind, requests } = plan
  const [first] = requests as [PlannedRequest]
  const url = new URL(first.origin)
  const isRenamed = kind === 'websocket' && first.authority !== url.host
  const options: ClientOptions = {
    clock,
    connect: isRenamed ? dialling(url, connect ?? dial) : connect,
    maxConnectionsPerOrigin: 1,
    connectTimeout: plan.connectTimeout,
    // Each request has one time limit, which is `timeout`.
    queueTimeout: Infinity,
    limits: { responseTimeout: Infinity, bodyTimeout: Infinity, sendTimeout: Infinity },
    tls: isRenamed ? { servername: url.hostname, ...tls } : tls,
    socketPath: plan.socketPath,
    ...(protocol === 'auto' ? {} : { protocols: [protocol], h2c: protocol === 'h2' }),
  }
  return new Client(options)
}

/** Dials the host and port of `url` whatever is asked for: the URL of a WebSocket is what its `host` field says. */
function dialling({ hostname, port, protocol }: URL, connect: Dialler): Dialler {
  const target = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) }
  return (asked, options, done) => connect('path' in asked ? asked : target, options, done)
}

/** Closes clients: as is proper where nothing is under way any more, and at once what does not close in time. */
export async function closeClients(clients: readonly Client[], clock: Clock): Promise<void> {
  const alarm = new Alarm(() => {
    for (const client of clients) client.destroy()
  })
  clock.set(alarm, clock.now() + closeTime)
  await Promise.all(clients.map((client) => client.close()))
  clock.clear(alarm)
}

/** ms a server may take to close its end. */
const closeTime = 1_000
