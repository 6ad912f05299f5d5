/** Two ends, and packets that are lost, come twice, and overtake each other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Random } from '../testing/index.ts'
import { octets, StreamEnd, type EndOptions, type Recorder, type Sent } from './stream-end.test.ts'
import type { Stream } from './quic-stream.ts'

interface UnderWay {
  readonly sent: Sent
  readonly from: StreamEnd
  readonly to: StreamEnd
  times: number
}

/** Carries packets between two ends in any order; every one is acknowledged or called lost, now and then wrongly. */
class Network {
  readonly client: StreamEnd
  readonly server: StreamEnd
  readonly #random: Random
  readonly #loss: number
  readonly #underWay: UnderWay[]

  constructor(seed: number, loss: number, clientOptions: EndOptions, serverOptions: EndOptions) {
    this.client = new StreamEnd(false, clientOptions)
    this.server = new StreamEnd(true, serverOptions)
    this.#random = new Random(seed)
    this.#loss = loss
    this.#underWay = []
  }

  /** Until nothing is under way and nobody has anything to send; `act` is called now and then. */
  run(act: () => boolean): void {
    for (let turn = 0; ; turn++) {
      assert.ok(turn < 200_000, 'the ends never fall silent')
      const hasActed = act()
      for (const end of [this.client, this.server]) {
        end.now = turn
        const sent = end.write(this.#random.chance(0.1) ? this.#random.integer(0, 59) : 20 + this.#random.integer(0, 1_179))
        end.set.settle()
        if (sent !== undefined) this.#underWay.push({ sent, from: end, to: end === this.client ? this.server : this.client, times: 1 })
      }
      if (this.#underWay.length === 0) {
        if (!hasActed && !this.client.hasFrames && !this.server.hasFrames) return
        continue
      }
      if (this.#random.chance(0.5)) this.#arrive()
    }
  }

  #arrive(): void {
    const random = this.#random
    const index = random.integer(0, Math.min(20, this.#underWay.length) - 1)
    const each = this.#underWay[index] as UnderWay
    if (random.chance(this.#loss)) {
      this.#underWay.splice(index, 1)
      each.from.lost(each.sent)
      return
    }
    assert.equal(each.to.read(each.sent), undefined)
    // It may come again, and be called lost although it arrived.
    if (each.times < 3 && random.chance(0.2)) {
      each.times++
      if (random.chance(0.5)) each.from.lost(each.sent)
      return
    }
    this.#underWay.splice(index, 1)
    if (random.chance(0.1)) each.from.lost(each.sent)
    else each.from.acked(each.sent)
  }
}

interface Talk {
  readonly stream: Stream
  readonly recorder: Recorder
  readonly size: number
  written: number
}

test('all octets of all streams come, once and in order, and then nothing is left at either end', () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer(),
        loss: fc.constantFrom(0, 0.05, 0.4),
        sizes: fc.array(fc.oneof(fc.constant(0), fc.nat(200), fc.nat(30_000)), { minLength: 1, maxLength: 8 }),
        window: fc.constantFrom(40, 2_000, 100_000),
        connection: fc.constantFrom(50, 3_000, 100_000),
        streams: fc.constantFrom(1, 2, 100),
        incremental: fc.boolean(),
      }),
      ({ seed, loss, sizes, window, connection, streams, incremental }) => {
        const scarce: EndOptions = {
          initialMaxData: connection,
          initialMaxStreamData: window,
          largestWindow: 50_000,
          maxBidirectionalStreams: streams,
          peer: {
            initialMaxData: connection,
            initialMaxStreamDataBidiLocal: window,
            initialMaxStreamDataBidiRemote: window,
            initialMaxStreamsBidi: streams,
          },
        }
        const random = new Random(seed)
        const network = new Network(seed, loss, scarce, scarce)
        const { client, server } = network
        const talks: Talk[] = []
        const answered = new Set<number>()
        network.run(() => {
          let hasActed = false
          if (talks.length < sizes.length && client.set.ids.openable(true) > 0) {
            const { stream, recorder } = client.open(true)
            stream.setPriority(random.integer(0, 7), incremental)
            talks.push({ stream, recorder, size: sizes[talks.length] as number, written: 0 })
            hasActed = true
          }
          for (const talk of talks) {
            if (talk.written < 0) continue
            const count = Math.min(talk.size - talk.written, random.integer(0, 3_999))
            const from = talk.written
            talk.written += count
            const isLast = talk.written === talk.size
            const bytes = octets(from, talk.written)
            if (random.chance(0.5)) talk.stream.sendOwned(bytes, isLast)
            else talk.stream.send(bytes, 0, count, isLast)
            if (isLast) talk.written = -1
            hasActed = true
          }
          // The server answers with half as much when all has come.
          for (const [id, recorder] of server.accepted) {
            if (answered.has(id) || !recorder.events.some((event) => event.endsWith('fin'))) continue
            answered.add(id)
            recorder.stream?.sendOwned(octets(0, recorder.came >> 1), true)
            hasActed = true
          }
          return hasActed
        })
        assert.equal(talks.length, sizes.length)
        for (const { stream, recorder, size } of talks) {
          const peer = server.acceptedStream(stream.id).recorder
          assert.equal(peer.came, size)
          assert.equal(recorder.came, size >> 1)
          assert.equal(recorder.sent, size)
          assert.equal(peer.sent, size >> 1)
          for (const each of [recorder, peer]) {
            assert.equal(each.events.filter((event) => event.endsWith('fin')).length, 1)
            assert.equal(each.events.filter((event) => event === 'close').length, 1)
            assert.equal(each.events.at(-1), 'close')
          }
          assert.equal(stream.sending?.buffer.held, 0)
        }
        client.assertEmpty()
        server.assertEmpty()
        const total = sizes.reduce((sum, size) => sum + size, 0)
        assert.equal(client.set.sendWindow.used, total)
        assert.equal(server.set.receiveWindow.received, total)
        assert.equal(server.set.receiveWindow.consumed, total)
      },
    ),
    { numRuns: 60 },
  )
})

test('streams that are reset and stopped at any time by both ends are over at both, and the windows are whole', () => {
  fc.assert(
    fc.property(fc.integer(), fc.constantFrom(0, 0.1, 0.4), (seed, loss) => {
      const random = new Random(seed)
      const network = new Network(seed, loss, {}, {})
      const { client, server } = network
      const mine: { stream: Stream; recorder: Recorder }[] = []
      for (let i = 0; i < 6; i++) mine.push(client.open(true))
      for (const { stream } of mine) stream.send(octets(0, 5_000), 0, 5_000, random.chance(0.5))
      const acts = 30
      let acted = 0
      network.run(() => {
        if (!random.chance(0.1) && acted < acts) return true
        const streams = [...mine.map(({ stream }) => stream), ...[...server.accepted.values()].map(({ stream }) => stream)]
        if (acted >= acts) {
          if (acted++ > acts) return false
          // In the end everything is ended by somebody.
          for (const stream of streams) stream?.reset(9)
          for (const { stream } of server.accepted.values()) stream?.stopSending(8)
          return true
        }
        acted++
        const stream = streams[random.integer(0, streams.length - 1)]
        const die = random.integer(0, 3)
        if (die === 0) stream?.reset(1)
        else if (die === 1) stream?.stopSending(2)
        else if (die === 2) stream?.send(new Uint8Array(0), 0, 0, random.chance(0.5))
        return true
      })
      for (const { stream } of mine) if (!server.accepted.has(stream.id)) assert.fail(`stream ${stream.id} was never told of`)
      // A stream that the server heard of late was not ended by it yet.
      network.run(() => {
        let hasActed = false
        for (const end of [client, server]) {
          for (const stream of end.set.table.values()) {
            if (stream.sending !== undefined && stream.sending.state < 2) hasActed = true
            stream.reset(9)
          }
        }
        return hasActed
      })
      client.assertEmpty()
      server.assertEmpty()
      for (const end of [client, server]) {
        const other = end === client ? server : client
        assert.equal(end.set.receiveWindow.received, other.set.sendWindow.used)
        assert.equal(end.set.receiveWindow.consumed, end.set.receiveWindow.received)
        for (const { events } of [...mine.map(({ recorder }) => recorder), ...server.accepted.values()]) {
          assert.equal(events.filter((event) => event === 'close').length, 1)
          assert.equal(events.at(-1), 'close')
          assert.ok(events.filter((event) => event.startsWith('reset') || event.endsWith('fin')).length <= 1)
        }
      }
    }),
    { numRuns: 60 },
  )
})

test('100,000 streams come and go: nothing is left of them, and the last is found as the first was', () => {
  const client = new StreamEnd(false)
  const server = new StreamEnd(true)
  const body = octets(0, 20)
  let closed = 0
  const count = 100_000
  for (let number = 0; number < count; number++) {
    const { stream, recorder } = client.open(true)
    stream.send(body, 0, 20, true)
    const request = client.write()
    assert.ok(request)
    assert.equal(server.read(request), undefined)
    const { stream: answering } = server.acceptedStream(stream.id)
    answering.send(body, 0, 20, true)
    const answer = server.write()
    assert.ok(answer)
    assert.equal(client.read(answer), undefined)
    client.acked(request)
    server.acked(answer)
    if (recorder.events.at(-1) === 'close') closed++
    server.accepted.clear()
    assert.equal(client.set.size + server.set.size, 0)
  }
  assert.equal(closed, count)
  client.ackAll(client.writeAll())
  server.ackAll(server.writeAll())
  client.assertEmpty()
  server.assertEmpty()
  assert.equal(server.set.ids.peer[0].unused.count, 0)
})
