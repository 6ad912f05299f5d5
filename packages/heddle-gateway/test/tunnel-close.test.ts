import { deepEqual, equal, ok } from 'node:assert/strict'
import { worldTest, type World } from 'heddle/testing'
import { routeConfig } from './rig.ts'
import { pair, versions, type End, type Pair, type PairOptions, type Version } from './tunnel-ends.ts'
import { closeFrame, frame, Opcode, readFrames, type Frame } from './websocket-frames.ts'

const key = Uint8Array.of(0x12, 0x34, 0x56, 0x78)
const goingAway = Buffer.from([0x03, 0xe9])

interface Opened {
  readonly made: Pair
  readonly client: End
  readonly upstream: End
}

async function open(world: World, from: Version, to: Version, options: PairOptions = {}): Promise<Opened> {
  const made = await pair(world, from, to, options)
  const client = made.open()
  for (let waited = 0; client.head?.status !== 200 && waited < 5_000; waited += 10) world.advance(10)
  equal(client.head?.status, 200)
  return { made, client, upstream: made.upstreams[0] as End }
}

function frames(end: End): Frame[] {
  const { frames: whole, rest } = readFrames(end.content)
  deepEqual(rest.length, 0, 'whole frames only')
  return whole
}

/** An end that behaves: a Close is answered, behind the frame it is about to send; the server ends first (RFC 6455 §7.1.1). */
class Talker {
  readonly end: End
  readonly isClient: boolean
  /** The rest of the frame that was begun. */
  pending: Buffer | undefined
  closing: boolean

  constructor(end: End, isClient: boolean) {
    this.end = end
    this.isClient = isClient
    this.pending = undefined
    this.closing = false
    let unread: Buffer = Buffer.alloc(0)
    end.onBytes = (bytes) => {
      const read = readFrames(Buffer.concat([unread, bytes]))
      unread = read.rest
      if (this.closing || !read.frames.some(({ opcode }) => opcode === Opcode.Close)) return
      this.closing = true
      if (this.pending === undefined) this.close()
    }
    const { onData } = end
    end.onData = (...call) => {
      onData.apply(end, call)
      if (isClient && end.ended) end.end()
    }
  }

  begin(bytes: Buffer, size: number): void {
    if (this.closing) return
    this.end.send(bytes.subarray(0, size))
    this.pending = bytes.subarray(size)
  }

  finish(): void {
    if (this.pending === undefined) return
    this.end.send(this.pending)
    this.pending = undefined
    if (this.closing) this.close()
  }

  private close(): void {
    this.end.send(closeFrame(1001, this.isClient ? key : undefined))
    if (!this.isClient) this.end.end()
  }
}

function behave({ client, upstream }: Opened): readonly [Talker, Talker] {
  return [new Talker(client, true), new Talker(upstream, false)]
}

/** What `end` got is what was sent to it, up to some frame, and a Close; nothing more. */
function wantClosed(end: End, sent: readonly Buffer[], masked: boolean): number {
  const got = frames(end)
  const last = got.pop()
  deepEqual([last?.opcode, last?.masked, last?.payload], [Opcode.Close, masked, goingAway])
  deepEqual(
    got.map(({ payload }) => payload),
    sent.slice(0, got.length),
  )
  ok(got.every((each) => each.masked === masked && each.opcode !== Opcode.Close))
  return got.length
}

async function over({ made }: Opened): Promise<void> {
  deepEqual(made.rig.leftovers(), [])
  equal(made.rig.cluster.stats().tunnels, 0)
  await made.close()
}

for (const from of versions) {
  for (const to of versions) {
    const name = `${from} to ${to}`

    worldTest(`${name}: a drain gives both ends whole frames and a Close, whenever it comes`, { seeds: 12 }, async (world) => {
      const { random } = world
      const link = {
        splits: random.pick(['random', 'none'] as const),
        jitter: random.integer(0, 2),
        capacity: random.pick([8_192, 262_144]),
      }
      const opened = await open(world, from, to, { clientLink: link, upstreamLink: link })
      const { client, upstream, made } = opened
      const talkers = behave(opened)
      const said: Buffer[] = []
      const answered: Buffer[] = []
      for (const [talker, payloads, mask] of [
        [talkers[0], said, key],
        [talkers[1], answered, undefined],
      ] as const) {
        let time = 0
        for (let i = 0; i < 30; i++) {
          const payload = Buffer.alloc(random.pick([0, 1, 125, 126, 2_000, 70_000]), random.integer(0, 255))
          payloads.push(payload)
          const bytes = frame(payload, mask)
          const cut = random.integer(0, bytes.length)
          world.after(time, () => talker.begin(bytes, cut))
          world.after((time += random.integer(0, 4)), () => talker.finish())
        }
      }
      world.advance(random.integer(0, 120))
      made.rig.proxy.tunnels.end(0)
      world.advance(4_900)
      wantClosed(upstream, said, true)
      wantClosed(client, answered, false)
      deepEqual([client.error, upstream.error], [undefined, undefined], 'nobody was cut')
      const { reason, tunnel } = made.rig.record()
      deepEqual([reason, tunnel], ['shutdown', true])
      await over(opened)
    })

    worldTest(`${name}: who has begun a frame may finish it, who does not is cut`, { seeds: 2 }, async (world) => {
      for (const finishes of [true, false]) {
        const opened = await open(world, from, to)
        const { client, upstream, made } = opened
        const [talker] = behave(opened)
        talker.begin(frame('to be continued', key), 9)
        world.advance(100)
        made.rig.proxy.tunnels.end(1_000)
        world.advance(900)
        equal(client.size, 0, 'there is grace')
        world.advance(200)
        wantClosed(client, [], false)
        equal(readFrames(upstream.content).frames.length, 0, 'no Close in the middle of a frame')
        if (finishes) {
          talker.finish()
          world.advance(200)
          equal(wantClosed(upstream, [Buffer.from('to be continued')], true), 1)
          deepEqual([client.error, upstream.error], [undefined, undefined])
        } else {
          world.advance(5_000)
          ok(upstream.closed)
        }
        await over(opened)
      }
    })

    worldTest(`${name}: ends that do not answer a Close are cut after 5 s`, { seeds: 2 }, async (world) => {
      const opened = await open(world, from, to)
      const { client, upstream, made } = opened
      made.rig.proxy.tunnels.end(0)
      world.advance(4_800)
      deepEqual([wantClosed(client, [], false), wantClosed(upstream, [], true)], [0, 0])
      deepEqual([client.closed, upstream.closed], [false, false])
      world.advance(400)
      deepEqual([client.closed, upstream.closed], [true, true])
      equal(made.rig.record().reason, 'shutdown')
      await over(opened)
    })

    worldTest(`${name}: where one end has begun to close, nobody interferes`, { seeds: 2 }, async (world) => {
      for (const first of ['client', 'upstream'] as const) {
        const opened = await open(world, from, to)
        const { client, upstream, made } = opened
        opened[first].send(closeFrame(4_000, first === 'client' ? key : undefined))
        world.advance(100)
        made.rig.proxy.tunnels.end(0)
        world.advance(100)
        opened[first === 'client' ? 'upstream' : 'client'].send(closeFrame(4_000, first === 'client' ? undefined : key))
        upstream.end()
        client.end()
        world.advance(100)
        for (const end of [client, upstream]) {
          deepEqual(
            frames(end).map(({ opcode, payload }) => [opcode, payload.readUInt16BE(0)]),
            [[Opcode.Close, 4_000]],
          )
          equal(end.error, undefined)
        }
        await over(opened)
      }
    })

    worldTest(`${name}: silence ends a WebSocket with a Close, and only silence`, { seeds: 2 }, async (world) => {
      const opened = await open(world, from, to, { routes: [routeConfig({ extendedConnect: true, tunnelIdleTimeout: 10_000 })] })
      const { client, upstream, made } = opened
      behave(opened)
      for (let i = 0; i < 4; i++) {
        world.advance(9_000)
        if (i % 2 === 0) client.send(frame('', key, Opcode.Ping))
        else upstream.send(frame('', undefined, Opcode.Ping))
        world.advance(20)
      }
      world.advance(9_900)
      deepEqual([frames(client).length, frames(upstream).length], [2, 2])
      world.advance(200)
      deepEqual([frames(client).at(-1)?.payload, frames(upstream).at(-1)?.payload], [goingAway, goingAway])
      deepEqual([client.error, upstream.error], [undefined, undefined])
      equal(made.rig.record().reason, 'tunnel_idle')
      await over(opened)
    })

    worldTest(`${name}: what is no WebSocket, or says what no WebSocket says, is cut`, { seeds: 2 }, async (world) => {
      for (const protocol of ['websocket', 'other']) {
        const opened = await open(world, from, to, { protocol })
        const { client, upstream, made } = opened
        if (protocol === 'websocket') client.send(Buffer.from('82ffffffffffffffffff', 'hex'))
        world.advance(100)
        made.rig.proxy.tunnels.end(0)
        world.advance(100)
        ok(client.closed && client.error !== undefined && upstream.closed && upstream.error !== undefined)
        equal(made.rig.record().reason, 'shutdown')
        await over(opened)
      }
    })

    worldTest(`${name}: an end that leaves on its Close does not cost the other its own`, { seeds: 2 }, async (world) => {
      for (const leaver of ['client', 'upstream'] as const) {
        const opened = await open(world, from, to)
        const { made } = opened
        const stays = leaver === 'client' ? opened.upstream : opened.client
        made.rig.proxy.tunnels.end(0)
        world.advance(50)
        opened[leaver].reset()
        world.advance(1_000)
        deepEqual([stays.closed, frames(stays).map(({ opcode }) => opcode)], [false, [Opcode.Close]])
        stays.send(closeFrame(1001, leaver === 'client' ? undefined : key)).end()
        world.advance(100)
        deepEqual([stays.closed, stays.error], [true, undefined])
        equal(made.rig.record().reason, 'shutdown')
        await over(opened)
      }
    })
  }
}

worldTest('a tunnel that opens when the time of tunnels is over is closed at once', { seeds: 2 }, async (world) => {
  const opened = await open(world, 'h2', 'h1')
  const { made } = opened
  behave(opened)
  made.rig.proxy.tunnels.end(5_000)
  made.rig.proxy.tunnels.end(100)
  made.rig.proxy.tunnels.end(3_000)
  world.advance(200)
  deepEqual(
    frames(opened.client).map(({ opcode }) => opcode),
    [Opcode.Close],
    'the earliest counts',
  )
  const late = made.open()
  world.advance(200)
  deepEqual([wantClosed(late, [], false), wantClosed(made.upstreams[1] as End, [], true)], [0, 0])
  world.advance(5_000)
  await over(opened)
})
