/** How connections end: closed, silent, forgotten, or by what runs on them (RFC 9000 §10). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NetworkError, type HeddleError } from '../http/index.ts'
import { Echo, packetTypes, QuicWorld, RecordingApplication, silent, type Flight, type QuicWorldOptions } from '../testing/index.ts'
import type { QuicConnection } from './connection.ts'

interface Ends {
  readonly world: QuicWorld
  readonly client: QuicConnection
  readonly server: QuicConnection
  readonly application: RecordingApplication
}

function connected(options: QuicWorldOptions = {}): Ends {
  const world = new QuicWorld(options)
  const application = silent()
  const client = world.connected(application)
  world.pass(300)
  const [server] = world.accepted as [QuicConnection]
  return { world, client, server, application }
}

function nothingIsLeft({ world }: Ends, ms = 10_000): void {
  assert.ok(
    world.run(() => world.client.connections.size + world.server.connections.size === 0, ms),
    'all connections go',
  )
  const left = [world.client.keys, world.server.keys, world.client.handshakes, world.server.handshakes, world.crypto.openKeys]
  assert.deepEqual(left, [0, 0, 0, 0, 0], 'ids, ids, handshakes, handshakes, keys')
  assert.ok(world.sessions.every(({ isClosed }) => isClosed))
}

function errorOf(world: QuicWorld): HeddleError | undefined {
  return world.applications[0]?.error
}

describe('CONNECTION_CLOSE (RFC 9000 §10.2)', () => {
  test('the application’s code and words reach the peer’s, and its own hears nothing', () => {
    const ends = connected()
    ends.client.close(0x105, 'that is all')
    ends.world.pass(20)
    assert.deepEqual([errorOf(ends.world)?.code, errorOf(ends.world)?.wireCode], ['PEER_CLOSED', 0x105])
    assert.match(errorOf(ends.world)?.message ?? '', /that is all/)
    assert.equal(ends.application.error, undefined)
    nothingIsLeft(ends)
  })

  test('closing begins when it is said, however long the connection was silent', () => {
    const ends = connected()
    ends.world.pass(20_000)
    ends.client.close(1, '')
    assert.ok(ends.world.run(() => ends.server.closing.state === 'draining', 100))
    assert.equal(ends.client.closing.state, 'closing', 'for three probe timeouts')
    assert.ok(ends.client.deadline > ends.world.now + 20)
    nothingIsLeft(ends, 1_000)
  })

  test('one that is lost is said again when the peer goes on', () => {
    const ends = connected()
    const { world, client, server } = ends
    const echo = new Echo(client, 400_000)
    world.run(() => echo.came > 100_000)
    let lost = 0
    world.drop = ({ toServer }) => !toServer && lost++ < 3
    server.close(9, 'enough')
    assert.ok(world.run(() => ends.application.error !== undefined, 1_000))
    assert.equal(ends.application.error?.wireCode, 9)
    assert.ok(lost > 1)
    nothingIsLeft(ends)
  })

  test('both ends may close at once', () => {
    const ends = connected()
    const { world, client, server } = ends
    client.close(1, '')
    server.close(2, '')
    const before = world.log.length
    nothingIsLeft(ends)
    assert.ok(world.log.length - before < 10, 'and do not go on telling each other')
    assert.deepEqual([ends.application.error, errorOf(world)], [undefined, undefined])
  })

  test('a flood while it closes is answered ever less often, and nothing once the peer has closed', () => {
    const ends = connected()
    const { world, client, server } = ends
    client.close(1, '')
    world.flush()
    world.flights = []
    const before = world.log.length
    const noise = new Uint8Array(60)
    noise[0] = 0x40
    noise.set(client.localId, 1)
    for (let i = 0; i < 1_000; i++) world.inject(false, noise)
    assert.equal(world.log.length - before, 9)
    world.flights = []
    server.receiveClose(0, true, '')
    const drained = world.log.length
    noise.set(server.localId, 1)
    for (let i = 0; i < 1_000; i++) world.inject(true, noise)
    assert.equal(world.log.length, drained)
    nothingIsLeft(ends)
  })

  test('in the handshake all levels say it, and nothing of the application', () => {
    for (const end of ['client', 'server'] as const) {
      const world = new QuicWorld()
      const application = silent()
      const client = world.connect(application)
      world.run(
        () => (end === 'client' ? client.handshake.peer !== undefined || client.handshake.isComplete : world.accepted.length > 0),
        1_000,
      )
      const closing = end === 'client' ? client : (world.accepted[0] as QuicConnection)
      closing.close(0x42, 'secret words')
      const before = world.log.length
      world.flush()
      const [{ bytes }] = world.log.slice(before) as [Flight]
      const types = packetTypes(bytes)
      assert.ok(types.length >= 2, `${end}: ${types.join()}`)
      if (end === 'client' && types.includes(0)) assert.equal(bytes.length, 1_200)
      assert.ok(
        world.run(() => (end === 'client' ? world.applications[0] : application)?.error !== undefined, 5_000),
        end,
      )
      nothingIsLeft({ world, client, server: closing, application })
    }
  })

  test('a client that closes before anything came fills its datagram (RFC 9000 §14.1)', () => {
    const world = new QuicWorld()
    const client = world.connect()
    world.flush()
    client.close(1, '')
    world.flush()
    assert.deepEqual(
      world.log.map(({ bytes }) => bytes.length),
      [1_200, 1_200],
    )
    assert.ok(world.run(() => world.client.connections.size + world.server.connections.size === 0, 20_000))
  })

  test('a reason of any length fits', () => {
    for (const size of [0, 10, 1_000, 100_000]) {
      const ends = connected()
      ends.client.close(1, 'ä'.repeat(size))
      ends.world.pass(20)
      assert.match(errorOf(ends.world)?.message ?? '', size === 0 ? /error 0x1$/ : /, ä+$/)
      nothingIsLeft(ends)
    }
  })
})

describe('silence (RFC 9000 §10.1)', () => {
  test('the lesser of both ends’ limits ends a silent connection at both, without a word', () => {
    const ends = connected({ client: { maxIdleTimeout: 5_000 } })
    const before = ends.world.log.length
    nothingIsLeft(ends, 6_000)
    assert.deepEqual([ends.application.error?.code, errorOf(ends.world)?.code], ['IDLE_TIMEOUT', 'IDLE_TIMEOUT'])
    assert.equal(ends.world.log.length, before)
  })

  test('without a limit nothing ends it', () => {
    const ends = connected({ client: { maxIdleTimeout: 0 }, server: { maxIdleTimeout: 0 } })
    ends.world.pass(100_000_000)
    assert.deepEqual([ends.client.deadline, ends.server.deadline], [Infinity, Infinity])
    completes(ends)
  })

  test('who keeps it alive asks as often as it should, whether answered or not', () => {
    const ends = connected({ client: { maxIdleTimeout: 10_000, keepAlive: 2_000 } })
    const { world, client } = ends
    client.keepAlive(true)
    // Anything lets the connection look anew at its deadlines.
    completes(ends)
    const before = world.log.length
    world.pass(60_000)
    assert.equal(client.closing.state, 'open')
    const asked = world.log.slice(before).filter(({ toServer }) => toServer).length
    assert.ok(asked >= 28 && asked <= 62, `${asked}`)
    // Nobody answers any more: a few questions and probes, no storm.
    world.drop = ({ toServer }) => !toServer
    const alone = world.log.length
    assert.ok(world.run(() => client.closing.state === 'closed', 60_000))
    const lonely = world.log.slice(alone).filter(({ toServer }) => toServer).length
    assert.ok(lonely >= 4 && lonely < 40, `${lonely}`)
    assert.equal(ends.application.error?.code, 'IDLE_TIMEOUT')
  })

  test('who does not want it any more lets it end', () => {
    const ends = connected({ client: { maxIdleTimeout: 5_000, keepAlive: 1_000 } })
    ends.client.keepAlive(true)
    completes(ends)
    ends.world.pass(20_000)
    assert.equal(ends.client.closing.state, 'open')
    ends.client.keepAlive(false)
    nothingIsLeft(ends, 20_000)
  })
})

test('a connection whose socket is gone is gone with its error', () => {
  const ends = connected()
  ends.client.abandon(new NetworkError('NETWORK_ERROR', 'no socket'))
  assert.equal(ends.application.error?.message, 'no socket')
  assert.equal(ends.world.client.connections.size, 0)
  assert.equal(ends.client.deadline, Infinity)
  assert.equal(ends.client.transmit(new Uint8Array(2_048), 0, 2_048, ends.world.now), 0)
  ends.client.expire(ends.world.now)
  ends.client.close(0, '')
  ends.client.abandon(new NetworkError('NETWORK_ERROR', 'again'))
  assert.equal(ends.application.error?.message, 'no socket', 'once')
  nothingIsLeft(ends, 60_000)
})

describe('what runs on a connection throws', () => {
  const bug = new Error('bug')
  const throws = (): never => {
    throw bug
  }
  const nothing = { onData() {}, onReset() {}, onStopSending() {}, onSent() {}, onClose() {} }

  /** Where it throws, and how it comes to that. */
  const cases: Record<string, (application: RecordingApplication) => void> = {
    startRun: (application) => (application.startRun = throws),
    finishRun: (application) => (application.finishRun = throws),
    onReady: (application) => (application.onReady = throws),
    onStream: (application) => (application.onStream = throws),
    'onData of a stream': (application) => (application.accept = () => ({ ...nothing, onData: throws })),
    'onSent of a stream': (application) =>
      (application.accept = (stream) => ({ ...nothing, onData: () => void stream.sendOwned(new Uint8Array(10), true), onSent: throws })),
    'onClose of a stream': (application) =>
      (application.accept = (stream) => ({ ...nothing, onData: () => void stream.sendOwned(new Uint8Array(10), true), onClose: throws })),
    expire: (application) => {
      application.deadline = 1_200
      application.expire = throws
    },
    'startRun and onClose': (application) => {
      application.startRun = throws
      application.onClose = throws
    },
  }
  for (const [name, spoil] of Object.entries(cases)) {
    test(`${name}: its connection ends with INTERNAL_ERROR, and no other`, () => {
      const world = new QuicWorld({
        accept: (application) => {
          if (world.accepted.length === 1) spoil(application)
          return application
        },
      })
      const well = world.connected()
      const application = silent()
      const client = world.connect(application)
      world.run(() => client.handshake.isComplete || client.closing.state !== 'open', 5_000)
      if (client.closing.state === 'open') new Echo(client, 100)
      assert.ok(
        world.run(() => application.error !== undefined, 5_000),
        'the peer is told',
      )
      assert.equal(application.error?.wireCode, 1)
      if (name !== 'startRun and onClose') {
        assert.equal(world.applications[1]?.error?.code, 'HANDLER_FAILED')
        assert.equal(world.applications[1]?.error?.cause, bug)
      }
      const echo = new Echo(well, 10_000)
      assert.ok(world.run(() => echo.isClosed, 5_000) && echo.isRight)
      well.close(0, '')
      nothingIsLeft({ world, client, server: client, application })
    })
  }

  test('a client’s onTicket, onToken and onReady', () => {
    for (const name of ['onTicket', 'onToken', 'onReady'] as const) {
      const world = new QuicWorld()
      const application = silent()
      application[name] = throws
      const client = world.connect(application)
      assert.ok(
        world.run(() => application.error !== undefined, 5_000),
        name,
      )
      assert.equal(application.error?.code, 'HANDLER_FAILED')
      assert.ok(
        world.run(() => errorOf(world) !== undefined, 5_000),
        name,
      )
      nothingIsLeft({ world, client, server: client, application })
    }
  })

  test('a server that throws when it is told of a connection', () => {
    const world = new QuicWorld({ accept: throws })
    const application = silent()
    const client = world.connect(application)
    assert.ok(world.run(() => application.error !== undefined, 5_000))
    assert.equal(application.error?.wireCode, 1)
    nothingIsLeft({ world, client, server: client, application })
  })
})

describe('an application that closes in a call', () => {
  test('at the end of a run that sent nothing, the peer hears of it', () => {
    const ends = connected()
    const { world, client, application } = ends
    let isTold = false
    let isArmed = false
    client.onDirty = () => (isTold = true)
    application.finishRun = () => {
      if (!isArmed) return
      isArmed = false
      client.close(3, 'in a run')
    }
    const buffer = new Uint8Array(2_048)
    let calls = 0
    application.startRun = () => (isArmed = false)
    const finish = application.finishRun
    application.finishRun = () => {
      // The second call of one run: after it nobody asks again.
      if (++calls === 2) isArmed = true
      finish()
    }
    assert.equal(client.transmit(buffer, 0, 2_048, world.now), 0)
    assert.ok(isTold)
    assert.ok(client.transmit(buffer, 0, 2_048, world.now) > 0)
  })

  test('in onReady, in onStream and in onData', () => {
    for (const where of ['ready', 'stream', 'data'] as const) {
      const world = new QuicWorld({
        accept: (application) => {
          const close = (): void => world.accepted[0]?.close(4, where)
          if (where === 'ready') application.onReady = close
          application.accept = () => {
            if (where === 'stream') close()
            return { onData: () => where === 'data' && close(), onReset() {}, onStopSending() {}, onSent() {}, onClose() {} }
          }
          return application
        },
      })
      const application = silent()
      const client = world.connect(application)
      world.run(() => client.handshake.isComplete, 5_000)
      new Echo(client, 50_000)
      assert.ok(
        world.run(() => application.error !== undefined, 5_000),
        where,
      )
      assert.equal(application.error?.wireCode, 4)
      nothingIsLeft({ world, client, server: client, application })
    }
  })
})

function completes({ world, client }: Ends): void {
  const echo = new Echo(client, 1_000)
  assert.ok(world.run(() => echo.isClosed, 10_000))
  assert.ok(echo.isRight)
}
