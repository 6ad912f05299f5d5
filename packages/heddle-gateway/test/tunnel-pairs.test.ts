import { deepEqual, equal, ok } from 'node:assert/strict'
import { worldTest, type World } from 'heddle/testing'
import { CancelReason, responseHead } from 'heddle/http'
import { clusterConfig, routeConfig } from './rig.ts'
import { End, pair, versions, type Pair } from './tunnel-ends.ts'
import { frame } from './websocket-frames.ts'

/** Random bytes. */
function bytes(world: World, size: number): Buffer {
  const made = Buffer.alloc(size)
  for (let i = 0; i < size; i++) made[i] = world.random.integer(0, 255)
  return made
}

/** `content` in random pieces, at random times. Returns how long that takes, ms. */
function trickle(world: World, end: End, content: Buffer): number {
  let time = 0
  for (let at = 0; at < content.length;) {
    const size = world.random.pick([1, 100, 1_000, 20_000])
    const piece = content.subarray(at, at + size)
    world.after(time, () => void end.send(piece))
    at += size
    time += world.random.integer(0, 3)
  }
  return time
}

async function opened(made: Pair, fields?: readonly string[]): Promise<{ client: End; upstream: End }> {
  const client = made.open(fields)
  for (let waited = 0; client.head?.status !== 200 && waited < 5_000; waited += 10) made.rig.world.advance(10)
  const upstream = made.upstreams.at(-1) as End
  equal(client.head?.status, 200)
  return { client, upstream }
}

for (const from of versions) {
  for (const to of versions) {
    const name = `${from} to ${to}`

    worldTest(
      `${name}: bytes arrive as they were sent, both ways, whoever is slow and whoever ends first`,
      { seeds: 12 },
      async (world) => {
        const { random } = world
        const link = { splits: 'random', jitter: random.integer(0, 3), capacity: random.pick([4_096, 262_144]) } as const
        const made = await pair(world, from, to, { clientLink: link, upstreamLink: link })
        const ends = []
        for (let i = 0; i < 3; i++) ends.push(await opened(made))
        equal(made.rig.proxy.tunnels.open.size, 3)
        equal(made.rig.cluster.stats().tunnels, 3)
        const tunnels = []
        for (const { client, upstream } of ends) {
          client.delay = random.pick([0, 1, 7])
          upstream.delay = random.pick([0, 1, 7])
          const said = bytes(world, random.integer(0, 200_000))
          const answered = bytes(world, random.integer(0, 200_000))
          const times = [trickle(world, client, said), trickle(world, upstream, answered)] as const
          world.after(times[0] + random.integer(0, 50), () => void client.end())
          world.after(times[1] + random.integer(0, 50), () => void upstream.end())
          tunnels.push({ client, upstream, said, answered })
        }
        world.advance(60_000)
        for (const { client, upstream, said, answered } of tunnels) {
          ok(
            upstream.content.equals(said) && client.content.equals(answered),
            `${upstream.size} of ${said.length}, ${client.size} of ${answered.length}`,
          )
          deepEqual([client.ended, client.closed, client.error], [true, true, undefined])
          deepEqual([upstream.ended, upstream.closed, upstream.error], [true, true, undefined])
        }
        const sums = made.rig.records.map(({ reason, requestSize, responseSize }) => [reason, requestSize, responseSize])
        deepEqual(sums.sort(), tunnels.map(({ said, answered }) => ['', said.length, answered.length]).sort())
        deepEqual(made.rig.leftovers(), [])
        equal(made.rig.cluster.stats().tunnels, 0)
        await made.close()
      },
    )

    worldTest(
      `${name}: an end that does not read stops the other; nothing piles up, and it goes on when it reads again`,
      { seeds: 2 },
      async (world) => {
        for (const deaf of ['client', 'upstream'] as const) {
          const narrow = { capacity: 16_384 }
          const made = await pair(world, from, to, { clientLink: narrow, upstreamLink: narrow, listener: { port: 80 } })
          const { client, upstream } = await opened(made)
          const [reader, writer] = deaf === 'client' ? [client, upstream] : [upstream, client]
          reader.delay = Infinity
          const piece = bytes(world, 100_000)
          for (let i = 0; i < 100; i++) writer.send(piece)
          world.advance(5_000)
          const between = 10_000_000 - writer.unsent - reader.size
          // Two windows, and what the connections of either leg hold.
          ok(between < 3_500_000, `${between} bytes lie between the two`)
          ok(writer.unsent > 4_000_000, `${writer.unsent} bytes wait where they were made`)
          reader.exchange?.consume(reader.size)
          reader.delay = 0
          world.advance(60_000)
          equal(reader.size, 10_000_000)
          equal(client.closed, false, 'an open tunnel has no time limit but that of silence')
          client.end()
          upstream.end()
          world.advance(1_000)
          deepEqual(made.rig.leftovers(), [])
          await made.close()
        }
      },
    )

    worldTest(`${name}: an end that never reads is cut off after sendTimeout, and the other with it`, { seeds: 2 }, async (world) => {
      for (const deaf of ['client', 'upstream'] as const) {
        const narrow = { capacity: 16_384 }
        const made = await pair(world, from, to, { clientLink: narrow, upstreamLink: narrow })
        const { client, upstream } = await opened(made)
        const [reader, writer] = deaf === 'client' ? [client, upstream] : [upstream, client]
        reader.delay = Infinity
        const piece = bytes(world, 100_000)
        for (let i = 0; i < 100; i++) writer.send(piece)
        world.advance(58_000)
        equal(writer.closed, false)
        world.advance(10_000)
        // Who does not read does not see it, over HTTP/1.1.
        equal(writer.closed, true)
        equal(made.rig.record().reason, deaf === 'client' ? 'client_timeout' : 'send_timeout')
        deepEqual(made.rig.leftovers(), [])
        await made.close()
      }
    })

    worldTest(`${name}: a reset at either end, in the middle of anything, is one at the other`, { seeds: 10 }, async (world) => {
      const { random } = world
      for (const lost of ['client', 'upstream'] as const) {
        const made = await pair(world, from, to, { clientLink: { jitter: random.integer(0, 3) } })
        const { client, upstream } = await opened(made)
        trickle(world, client, bytes(world, 100_000))
        trickle(world, upstream, bytes(world, 100_000))
        world.advance(random.integer(0, 40))
        const [leaver, other] = lost === 'client' ? [client, upstream] : [upstream, client]
        leaver.reset()
        world.advance(1_000)
        ok(other.closed && other.error !== undefined, 'it does not look complete')
        const { reason, tunnel } = made.rig.record()
        ok(tunnel && reason !== '', reason)
        deepEqual(made.rig.leftovers(), [])
        await made.close()
      }
    })

    worldTest(`${name}: whatever happens whenever, it is over once at both ends, and nothing is left`, { seeds: 60 }, async (world) => {
      const { random } = world
      const link = {
        splits: random.pick(['none', 'random'] as const),
        jitter: random.integer(0, 3),
        capacity: random.pick([4_096, 262_144]),
      }
      const made = await pair(world, from, to, {
        clientLink: link,
        upstreamLink: link,
        listener: { limits: { sendTimeout: 700 } as never },
        clusters: [clusterConfig({ protocol: to === 'h1' ? 'h1' : 'h2c', sendTimeout: 700, headTimeout: 500 })],
        routes: [routeConfig({ extendedConnect: true, tunnelIdleTimeout: random.pick([300, 5_000]) })],
      })
      const answer = made.answer
      made.answer = (end) => {
        const { exchange } = end
        if (exchange === undefined) return
        end.delay = random.pick([0, 0, 5, Infinity])
        const choice = random.integer(0, 9)
        if (choice === 0) exchange.cancel(random.pick([CancelReason.Refused, CancelReason.InternalError]))
        else if (choice === 1) exchange.sendHead(responseHead(403, ['content-length', '2']), false)
        else if (choice === 2) exchange.sendHead(responseHead(404, ['content-length', '0']), true)
        else if (choice > 3) answer(end)
        if (choice === 1) exchange.sendData(Buffer.from('no'), 0, 2, true)
      }
      const clients: End[] = []
      const ends = (): readonly End[] => [...clients, ...made.upstreams].filter(({ opened }) => opened)
      for (let i = 0; i < 4; i++) {
        world.after(random.integer(0, 100), () => {
          const client = made.open()
          client.delay = random.pick([0, 0, 5, Infinity])
          clients.push(client)
        })
      }
      for (let i = 0; i < 40; i++) {
        world.after(random.integer(0, 600), () => {
          const all = ends()
          if (all.length === 0) return
          const end = random.pick(all)
          const choice = random.integer(0, 19)
          if (choice === 0) end.reset()
          else if (choice === 1) end.end()
          else if (choice === 2) made.rig.proxy.tunnels.end(random.integer(0, 200))
          else end.say(frame(Buffer.alloc(random.pick([0, 100, 5_000, 90_000])), clients.includes(end) ? Buffer.from('mask') : undefined))
        })
      }
      world.advance(1_000)
      made.rig.proxy.tunnels.end(0)
      world.advance(20_000)
      equal(made.rig.records.length, made.rig.started)
      ok(made.rig.records.every(({ tunnel, status, reason }) => tunnel || status >= 400 || reason !== ''))
      deepEqual(made.rig.leftovers(), [])
      equal(made.rig.cluster.stats().tunnels, 0)
      // Who reads nothing, or has read to the end, does not see that its connection is gone.
      for (const { closed, delay, ended } of clients) ok(closed || delay === Infinity || ended)
      await made.close()
    })

    worldTest(`${name}: what is about the WebSocket passes, what is about the hop is made anew`, { seeds: 1 }, async (world) => {
      const made = await pair(world, from, to)
      const asked = [
        ['origin', 'https://app.example'],
        ['sec-websocket-version', '13'],
        ['sec-websocket-protocol', 'chat, superchat'],
        ['sec-websocket-extensions', 'permessage-deflate; client_max_window_bits'],
        ['cookie', 'a=b'],
      ] as const
      const said = [
        ['sec-websocket-protocol', 'chat'],
        ['sec-websocket-extensions', 'permessage-deflate'],
      ] as const
      const accept = made.answer
      made.answer = (end) => {
        const { method, protocol, path, fields } = end.head!
        deepEqual([method, protocol, path], ['CONNECT', 'websocket', '/chat'])
        for (const [field, value] of asked) deepEqual([field, valuesOf(fields, field)], [field, [value]])
        deepEqual(valuesOf(fields, 'sec-websocket-key'), [], 'the engine keeps it to itself')
        const { exchange } = end
        const { sendHead } = exchange!
        exchange!.sendHead = (head, ends) => sendHead.call(exchange, { ...head, fields: said.flat() } as never, ends)
        accept(end)
      }
      const { client } = await opened(made, asked.flat())
      for (const [field, value] of said) deepEqual([field, valuesOf(client.head!.fields, field)], [field, [value]])
      deepEqual(valuesOf(client.head!.fields, 'sec-websocket-accept'), [])
      client.reset()
      world.advance(100)
      await made.close()
    })
  }
}

function valuesOf(fields: readonly string[], name: string): string[] {
  return fields.filter((_, i) => i % 2 === 1 && fields[i - 1] === name)
}
