import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as h1 from '../h1/index.ts'
import * as h2 from '../h2/index.ts'
import { requestHead, responseHead, type Exchange } from '../http/index.ts'
import { pair, type ConnectionEngine, type LinkedPair } from './pair.ts'
import { Recording, RecordingConnection } from './recording.ts'
import { World } from './world.ts'

/** A stretch of the engine's run loop, and how a bug is put into it and met. */
interface Fault {
  readonly method: string
  /** Where the bug is: `object.name`, from the engine on. */
  readonly h1: string
  readonly h2: string
  /** What the exchange ends with by then, if not with the bug. */
  readonly code?: Readonly<Record<'h1' | 'h2', string>>
  meet(world: World, linked: LinkedPair<ConnectionEngine, ConnectionEngine>, exchange: Exchange): void
}

const bytes = Buffer.from('abc')
const faults: readonly Fault[] = [
  {
    method: 'receive',
    h1: 'take',
    h2: 'receiver.receive',
    meet: (_world, { clientSocket }) => void clientSocket.write(bytes),
  },
  {
    method: 'receiveEnd',
    h1: 'takeEnd',
    h2: 'lifetime.receiveEnd',
    meet: (_world, { clientSocket }) => void clientSocket.end(),
  },
  {
    method: 'transmit',
    h1: 'reportSent',
    h2: 'sender.transmit',
    meet: (_world, _linked, exchange) => exchange.sendHead(responseHead(200), false),
  },
  {
    method: 'expire',
    h1: 'expireFirst',
    h2: 'timeLimits.expire',
    meet: (world) => world.advance(600_000),
  },
  // Told by the end of every call, when all else was done.
  {
    method: 'the end of a call',
    h1: 'settle',
    h2: 'announcements.maybeTellClosed',
    code: { h1: 'MESSAGE_TRUNCATED', h2: 'PEER_CLOSED' },
    meet: (_world, { clientSocket }) => void clientSocket.end(),
  },
]

const protocols = {
  h1: [
    (...args: ConstructorParameters<typeof h1.ClientConnection>) => new h1.ClientConnection(...args),
    (...args: ConstructorParameters<typeof h1.ServerConnection>) => new h1.ServerConnection(...args),
  ],
  h2: [
    (...args: ConstructorParameters<typeof h2.ClientConnection>) => new h2.ClientConnection(...args),
    (...args: ConstructorParameters<typeof h2.ServerConnection>) => new h2.ServerConnection(...args),
  ],
} as const

for (const [protocol, [client, server]] of Object.entries(protocols) as [keyof typeof protocols, (typeof protocols)['h1']][]) {
  for (const fault of faults) {
    test(`${protocol}: after a bug in ${fault.method} the exchange and the connection end once, with an error that says so`, () => {
      const world = new World()
      const serverHandler = new RecordingConnection()
      const linked = pair(world, {
        client: (info, handler, now) => client(info, handler, {}, now),
        server: (info, handler, now) => server(info, handler, {}, now),
        serverHandler,
        link: { delay: 1 },
      })
      world.advance(10)
      const asking = new Recording()
      asking.exchange = linked.client.open(asking)
      asking.exchange?.sendHead(requestHead('POST', 'http', 'origin.test', '/', ['content-length', '9']), false)
      world.advance(10)
      const served = serverHandler.exchanges[0] as Recording
      let thrown = 0
      spoil(linked.server, fault[protocol], () => {
        if (thrown++ > 0) return
        throw new Error('a bug')
      })
      fault.meet(world, linked, served.exchange as Exchange)
      world.advance(10)
      assert.equal(thrown > 0, true)
      assert.deepEqual(linked.faults, ['the engine threw: Error: a bug'])
      assert.equal(served.error?.code, fault.code?.[protocol] ?? 'HANDLER_FAILED')
      if (fault.code === undefined) assert.equal(String(served.error?.cause), 'Error: a bug')
      assert.deepEqual(served.faults, [])
      assert.equal(serverHandler.closed, true)
      // Whoever still holds it does no harm.
      linked.server.abort(served.error)
      linked.server.shutdown()
      assert.deepEqual(served.faults, [])
      world.run()
      assert.equal(asking.closed, true)
    })
  }
}

/** Puts `bug` in front of the method at `path`. */
function spoil(engine: object, path: string, bug: () => void): void {
  const names = path.split('.')
  const name = names.pop() as string
  const owner = names.reduce((object, property) => object[property] as never, engine as Record<string, object>)
  const method = (owner as Record<string, (...args: unknown[]) => unknown>)[name] as (...args: unknown[]) => unknown
  Object.defineProperty(owner, name, {
    value: (...args: unknown[]) => {
      bug()
      return method.apply(owner, args)
    },
  })
}
