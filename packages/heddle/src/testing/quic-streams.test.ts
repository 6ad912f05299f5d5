/** Streams from one end to the other: two connections with real TLS over a network that a seed makes bad. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadNative } from '../native/index.ts'
import type { QuicConnection, QuicOptions, QuicStream, QuicStreamHandler } from '../quic/index.ts'
import { makeAuthority, makeCertificate } from './certificate.ts'
import type { DatagramLinkOptions } from './datagram-link.ts'
import { QuicPair, RecordingApplication } from './quic-pair.ts'
import { Random } from './random.ts'

const native = loadNative()
const skip = 'unavailable' in native ? native.unavailable : false
const authority = makeAuthority()
const localhost = makeCertificate({ names: ['localhost'], ca: authority })

const pattern = Uint8Array.from({ length: 1 << 17 }, (_, index) => (index * 31 + (index >> 8) * 7) & 0xff)

/** How many octets a stream has, by its id, one way and back. */
type Sizes = (id: number) => number

/** What one end of one stream does: it sends so many octets, with pauses as it is told, and checks those that come. */
class Talk implements QuicStreamHandler {
  readonly end: End
  readonly random: Random
  readonly events: string[]
  stream: QuicStream | undefined
  size: number
  came: number
  sent: number
  written: number
  /** Octets that came and were not consumed yet. */
  held: number
  isOver: boolean

  constructor(end: End, size: number) {
    this.end = end
    this.random = end.random
    this.events = []
    this.stream = undefined
    this.size = size
    this.came = 0
    this.sent = 0
    this.written = 0
    this.held = 0
    this.isOver = false
  }

  /** Writes until it is told to wait. */
  write(): void {
    const { stream, random, size } = this
    if (stream === undefined) return
    while (this.written <= size) {
      const count = Math.min(size - this.written, random.length(9_000))
      const from = this.written
      const isLast = from + count === size
      const start = from % 65_536
      this.written = isLast ? Infinity : from + count
      const goesOn = random.chance(0.5)
        ? stream.send(pattern, start, start + count, isLast)
        : stream.sendOwned(pattern.slice(start, start + count), isLast)
      if (!goesOn) return
    }
  }

  onData(buffer: Uint8Array, start: number, limit: number, fin: boolean): void {
    const from = this.came % 65_536
    const count = limit - start
    if (Buffer.compare(buffer.subarray(start, limit), pattern.subarray(from, from + count)) !== 0) {
      assert.fail(`octets [${this.came}, ${this.came + count}) of stream ${this.stream?.id} are wrong`)
    }
    this.came += count
    this.held += count
    this.#note(fin ? 'fin' : 'data')
    // Some is consumed at once, some later, some with the end only.
    if (fin || this.random.chance(0.7)) this.consume()
  }
  onReset(errorCode: number): void {
    this.#note(`reset ${errorCode}`)
  }
  onStopSending(errorCode: number): void {
    this.#note(`stop ${errorCode}`)
  }
  onSent(byteCount: number, writable: boolean): void {
    this.#note('sent')
    this.sent += byteCount
    if (writable) this.write()
  }
  onClose(): void {
    this.#note('close')
    this.isOver = true
    this.end.open.delete(this)
    this.end.closed++
    this.end.openMore()
  }

  consume(): void {
    const { held } = this
    this.held = 0
    this.stream?.consume(held)
  }

  #note(event: string): void {
    assert.ok(!this.isOver, `${event} after close`)
    this.events.push(event)
  }
}

/** One end: it opens so many streams, as fast as it may, and answers those of the peer. */
class End extends RecordingApplication {
  readonly random: Random
  readonly sizes: Sizes
  readonly talks: Map<number, Talk>
  readonly open: Set<Talk>
  connection: QuicConnection | undefined
  /** Streams that are still to be opened: bidirectional, unidirectional. */
  readonly left: [bidirectional: number, unidirectional: number]
  closed: number
  /** Told of each stream as it begins. */
  onTalk: (talk: Talk) => void

  constructor(random: Random, sizes: Sizes, bidirectional: number, unidirectional: number) {
    super((stream) => this.#answer(stream))
    this.random = random
    this.sizes = sizes
    this.talks = new Map()
    this.open = new Set()
    this.connection = undefined
    this.left = [bidirectional, unidirectional]
    this.closed = 0
    this.onTalk = (): void => {}
  }

  override onReady(): void {
    super.onReady()
    this.openMore()
  }

  override onStreamsAvailable(): void {
    super.onStreamsAvailable()
    this.openMore()
  }

  openMore(): void {
    for (const kind of [0, 1] as const) {
      while (this.left[kind] > 0) {
        const talk = new Talk(this, 0)
        const stream = this.connection?.open(kind === 0, talk)
        if (stream === undefined) break
        this.left[kind]--
        this.#start(talk, stream)
      }
    }
  }

  #answer(stream: QuicStream): Talk {
    const talk = new Talk(this, 0)
    this.#start(talk, stream)
    return talk
  }

  #start(talk: Talk, stream: QuicStream): void {
    assert.ok(!this.talks.has(stream.id), `stream ${stream.id} began twice`)
    talk.stream = stream
    talk.size = this.sizes(stream.id)
    this.talks.set(stream.id, talk)
    this.open.add(talk)
    stream.setPriority(this.random.integer(0, 7), this.random.chance(0.5))
    this.onTalk(talk)
    talk.write()
  }
}

interface Meeting {
  readonly seed: number
  readonly bidirectional: number
  readonly unidirectional: number
  readonly sizes: Sizes
  readonly link: DatagramLinkOptions
  readonly options?: Partial<QuicOptions>
}

function meet({ seed, bidirectional, unidirectional, sizes, link, options }: Meeting): { pair: QuicPair; client: End; server: End } {
  if ('unavailable' in native) throw new Error(native.unavailable)
  const random = new Random(seed)
  const client = new End(random, sizes, bidirectional, unidirectional)
  const server = new End(random, sizes, bidirectional, unidirectional)
  const pair = new QuicPair({
    seed,
    crypto: native.crypto,
    clientTls: native.tls({ side: 'client', ca: authority.cert }),
    serverTls: native.tls({ side: 'server', cert: localhost.cert, key: localhost.key }),
    client,
    server,
    link,
    clientOptions: { ecn: false, ...options },
    serverOptions: { ecn: false, ...options },
  })
  client.connection = pair.client
  server.connection = pair.server
  return { pair, client, server }
}

/** Goes on until all is over; every now and then those who kept octets back consume them, and `act` may do something. */
function runUntil(isOver: () => boolean, { pair, client, server }: ReturnType<typeof meet>, act: (end: End) => void = () => {}): boolean {
  for (let turn = 0; turn < 20_000; turn++) {
    if (pair.run(isOver, client.random.integer(1, 40))) return true
    if (client.error !== undefined || server.error !== undefined) return false
    for (const end of [client, server]) {
      act(end)
      for (const talk of end.open) if (talk.held > 0) talk.consume()
    }
  }
  return false
}

/** No stream is left anywhere, and all credit was given back. */
function assertNothingLeft(pair: QuicPair): void {
  for (const [connection, other] of [
    [pair.client, pair.server],
    [pair.server, pair.client],
  ] as const) {
    const { streams } = connection
    assert.equal(streams.size, 0)
    for (const list of [streams.uncredited, streams.controlled, streams.told, streams.over]) assert.equal(list.length, 0)
    assert.equal(streams.schedule.first, undefined)
    for (const { unused } of streams.ids.peer) assert.equal(unused.count, 0)
    const { received, consumed, limit, size } = streams.receiveWindow
    assert.equal(consumed, received)
    assert.equal(received, other.streams.sendWindow.used)
    assert.equal(other.streams.sendWindow.limit, limit)
    assert.ok((limit - consumed) * 2 > size || limit - consumed === size, 'the window of the connection is whole')
  }
}

const fair: DatagramLinkOptions = { delay: 5 }
const bad: DatagramLinkOptions = { delay: 5, jitter: 8, loss: 0.05, duplicates: 0.1 }
const awful: DatagramLinkOptions = { delay: 3, jitter: 30, loss: 0.2, duplicates: 0.2 }

describe('all streams of both ends', { skip }, () => {
  const few = { initialMaxStreamData: 700, initialMaxData: 2_000, largestWindow: 20_000 }
  const cases: [name: string, meeting: Omit<Meeting, 'seed'>, seeds: number][] = [
    [
      'hundreds at once, over a fair network',
      { bidirectional: 300, unidirectional: 100, sizes: (id) => (id * 37) % 5_000, link: fair, options: { maxBidirectionalStreams: 300 } },
      2,
    ],
    [
      'hundreds, a few at a time, over a bad one',
      { bidirectional: 150, unidirectional: 60, sizes: (id) => (id * 37) % 3_000, link: bad },
      3,
    ],
    [
      'one of a kind at a time',
      {
        bidirectional: 12,
        unidirectional: 8,
        sizes: (id) => (id * 301) % 4_000,
        link: bad,
        options: { maxBidirectionalStreams: 1, maxUnidirectionalStreams: 1 },
      },
      4,
    ],
    [
      'windows smaller than a packet, and streams that wait for each other',
      {
        bidirectional: 12,
        unidirectional: 4,
        sizes: (id) => (id * 997) % 9_000,
        link: bad,
        options: { ...few, maxBidirectionalStreams: 3 },
      },
      4,
    ],
    [
      'a network that loses, doubles and reorders a fifth',
      { bidirectional: 20, unidirectional: 10, sizes: (id) => (id * 997) % 6_000, link: awful },
      4,
    ],
    ['a few long ones', { bidirectional: 3, unidirectional: 2, sizes: (id) => 200_000 + id * 40_000, link: bad }, 2],
    ['empty ones', { bidirectional: 40, unidirectional: 40, sizes: () => 0, link: bad }, 2],
  ]
  for (const [name, meeting, seeds] of cases) {
    test(name, () => {
      for (let seed = 1; seed <= seeds; seed++) {
        const met = meet({ ...meeting, seed })
        const { pair, client, server } = met
        const count = 2 * (meeting.bidirectional + meeting.unidirectional)
        const isOver = runUntil(() => client.closed === count && server.closed === count, met)
        const state = `seed ${seed}: ${client.closed} and ${server.closed} of ${count} are over; ${client.error?.message} ${server.error?.message}`
        assert.ok(isOver, state)
        for (const [id, talk] of client.talks) {
          const peer = server.talks.get(id)
          assert.ok(peer)
          const clientSends = (id & 2) === 0 || (id & 1) === 0
          const serverSends = (id & 2) === 0 || (id & 1) === 1
          const size = meeting.sizes(id)
          assert.equal(peer.came, clientSends ? size : 0)
          assert.equal(talk.came, serverSends ? size : 0)
          assert.equal(talk.sent, clientSends ? size : 0)
          assert.equal(peer.sent, serverSends ? size : 0)
          for (const { events } of [talk, peer]) {
            assert.equal(events.filter((event) => event === 'close').length, 1)
            assert.ok(!events.some((event) => event.startsWith('reset') || event.startsWith('stop')))
          }
          assert.equal(talk.events.filter((event) => event === 'fin').length, serverSends ? 1 : 0)
          assert.equal(peer.events.filter((event) => event === 'fin').length, clientSends ? 1 : 0)
        }
        // What is still under way of credit arrives.
        pair.advance(5_000)
        assertNothingLeft(pair)
      }
    })
  }
})

describe('streams that are reset and stopped', { skip }, () => {
  for (const [name, link] of Object.entries({ fair, bad, awful })) {
    test(`at random moments by both ends, over a network that is ${name}`, () => {
      for (let seed = 1; seed <= 5; seed++) {
        const bidirectional = 40
        const unidirectional = 20
        const met = meet({
          seed,
          bidirectional,
          unidirectional,
          sizes: (id) => (id * 1_237) % 40_000,
          link,
          options: { maxBidirectionalStreams: 10, initialMaxStreamData: 3_000, initialMaxData: 8_000, largestWindow: 50_000 },
        })
        const { pair, client, server } = met
        const { random } = client
        for (const end of [client, server]) {
          // Some end before anything was said, some in a call, most in between.
          end.onTalk = ({ stream }): void => {
            if (random.chance(0.1)) stream?.reset(1)
            if (random.chance(0.1)) stream?.stopSending(2)
          }
        }
        const count = 2 * (bidirectional + unidirectional)
        const isOver = runUntil(
          () => client.closed === count && server.closed === count,
          met,
          ({ open }) => {
            if (open.size === 0) return
            const { stream } = random.pick([...open])
            const die = random.integer(0, 7)
            if (die === 0) stream?.reset(3)
            else if (die === 1) stream?.stopSending(4)
            else if (die === 2) stream?.setPriority(random.integer(0, 7), random.chance(0.5))
          },
        )
        const state = `seed ${seed}: ${client.closed} and ${server.closed} of ${count} are over; ${client.error?.message} ${server.error?.message}`
        assert.ok(isOver, state)
        for (const end of [client, server]) {
          for (const { events } of end.talks.values()) {
            assert.equal(events.filter((event) => event === 'close').length, 1)
            assert.ok(events.filter((event) => event === 'fin' || event.startsWith('reset')).length <= 1)
            assert.ok(events.filter((event) => event.startsWith('stop')).length <= 1)
          }
        }
        pair.advance(5_000)
        assertNothingLeft(pair)
      }
    })
  }

  test('by a peer that ends the connection: nobody is told anything any more, and nothing is held', () => {
    const { pair, client, server } = meet({ seed: 1, bidirectional: 20, unidirectional: 5, sizes: () => 100_000, link: bad })
    assert.ok(pair.run(() => [...server.talks.values()].some(({ came }) => came > 10_000), 60_000))
    const told = (end: End): number => [...end.talks.values()].reduce((sum, { events }) => sum + events.length, 0)
    pair.client.close(7, 'enough')
    const before = told(client)
    assert.ok(pair.run(() => server.error !== undefined, 60_000))
    const atServer = told(server)
    for (const end of [client, server]) {
      for (const { stream } of end.talks.values()) {
        assert.equal(stream?.send(pattern, 0, 10, true), false)
        stream?.reset(1)
        stream?.stopSending(1)
        stream?.consume(10)
        assert.equal(stream?.queued, 0)
      }
    }
    pair.advance(60_000)
    assert.equal(told(client), before)
    assert.equal(told(server), atServer)
    assert.equal(pair.client.streams.size + pair.server.streams.size, 0)
    assert.equal(pair.gone.length, 2)
  })
})
