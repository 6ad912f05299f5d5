import assert from 'node:assert/strict'
import { CancelReason, requestHead, responseHead } from '../../http/index.ts'
import type { Random } from '../random.ts'
import type { Side } from './side.ts'
import { conformanceCase, type ConformanceCase, type Stage } from './stage.ts'

/** What one side has done so far, so that only what is allowed is tried. */
interface Progress {
  readonly side: Side
  /** Of its exchange, as a path: by it the two sides of an exchange are known to belong together. */
  path: string
  /** 1xx heads do not count. */
  headSent: boolean
  endSent: boolean
  consumed: number
}

/** Does one thing that is allowed now, chosen by the seed. */
function act(progress: Progress, random: Random, calm: boolean): void {
  const { side } = progress
  const { exchange } = side
  const owed = side.received - progress.consumed
  const roll = random.fraction()
  if (owed > 0 && roll < 0.4) return consume(progress, random.integer(1, owed))
  if (!calm && roll > 0.995) return exchange.cancel(CancelReason.Cancelled)
  if (!calm && roll > 0.985) return exchange.discard()
  if (roll > 0.97) return exchange.setPriority({ urgency: random.integer(0, 7), incremental: random.chance(0.5) })
  if (!progress.headSent) {
    if (side.role === 'server' && side.head === undefined) return
    return sendHead(progress, random)
  }
  if (progress.endSent || side.blocked) return
  sendMore(progress, random)
}

function consume(progress: Progress, byteCount: number): void {
  progress.consumed += byteCount
  progress.side.exchange.consume(byteCount)
}

function sendHead(progress: Progress, random: Random): void {
  const { exchange, role } = progress.side
  if (role === 'server' && random.chance(0.2)) return exchange.sendHead(responseHead(random.pick([103, 102])), false)
  const end = random.chance(0.2)
  progress.headSent = true
  progress.endSent = end
  const fields = random.chance(0.5) ? ['x-a', 'b'] : []
  if (role === 'client')
    exchange.sendHead(requestHead(random.pick(['POST', 'PUT', 'GET']), 'http', 'origin.test', progress.path, fields), end)
  else exchange.sendHead(responseHead(random.pick([200, 201, 404, 500]), fields), end)
}

function sendMore(progress: Progress, random: Random): void {
  const { exchange } = progress.side
  if (random.chance(0.05)) {
    progress.endSent = true
    return exchange.sendTrailers(['x-trailer', 'yes'])
  }
  const end = random.chance(0.1)
  if (end) progress.endSent = true
  const bytes = random.bytes(random.length(50_000))
  if (random.chance(0.5)) exchange.sendOwned(bytes, end)
  else {
    exchange.sendData(bytes, 0, bytes.length, end)
    bytes.fill(0xdb)
  }
}

/** Runs random exchanges for a while, then lets all of them end, and checks that what arrived is what was sent. */
function interleave(stage: Stage, calm: boolean): void {
  const { world } = stage
  const { random } = world
  const progresses = new Map<Side, Progress>()
  const watch = (side: Side): void => {
    side.autoConsume = false
    progresses.set(side, { side, path: `/${progresses.size}`, headSent: false, endSent: false, consumed: 0 })
  }
  stage.serve = watch
  const live = (): Progress[] => [...progresses.values()].filter(({ side }) => !side.closed && !side.cancelled)
  for (let turns = random.integer(50, 400); turns > 0; turns--) {
    if (random.chance(0.1)) {
      const side = stage.maybeOpen()
      if (side !== undefined) watch(side)
    }
    const actors = live()
    if (actors.length > 0) act(random.pick(actors), random, calm)
    for (let steps = random.integer(0, 4); steps > 0; steps--) world.step()
  }
  finishAll(stage, progresses, live)
  assertContents(stage, progresses, calm)
}

/** Everybody sends what is owed and consumes all that comes, until nothing is open. */
function finishAll(stage: Stage, progresses: ReadonlyMap<Side, Progress>, live: () => Progress[]): void {
  for (let round = 0; live().length > 0 && round < 200; round++) {
    for (const progress of live()) {
      const { side } = progress
      if (!progress.headSent && (side.role === 'client' || side.head !== undefined)) {
        progress.headSent = true
        progress.endSent = true
        side.exchange.sendHead(side.role === 'client' ? requestHead('GET', 'http', 'origin.test', progress.path) : responseHead(204), true)
      } else if (progress.headSent && !progress.endSent) {
        progress.endSent = true
        side.exchange.sendData(Buffer.alloc(0), 0, 0, true)
      }
      const owed = side.received - progress.consumed
      if (owed > 0) consume(progress, owed)
    }
    stage.run()
  }
  stage.run()
  // What a cancelled or discarded exchange leaves may need the time limits of a drain.
  stage.world.advance(120_000)
  assert.ok(progresses.size > 0)
  stage.checkOver()
}

/** The bytes of each exchange, compared over both sides. */
function assertContents(stage: Stage, progresses: ReadonlyMap<Side, Progress>, calm: boolean): void {
  if (!calm) return
  const servers = new Map(stage.sides.filter(({ role }) => role === 'server').map((side) => [side.head?.path, side]))
  const clients = stage.sides.filter(({ role }) => role === 'client')
  assert.equal(servers.size, clients.length)
  for (const client of clients) {
    const server = servers.get(progresses.get(client)?.path)
    assert.ok(server !== undefined, 'each request arrived')
    compare(client, server)
  }
  for (const side of stage.sides) {
    assert.equal(side.error, undefined, `${side.role}: ${side.error?.message}`)
    assert.ok(side.ended)
  }
}

function compare(client: Side, server: Side): void {
  assert.ok(server.content.equals(Buffer.concat(client.given)), 'the server got what the client sent')
  assert.ok(client.content.equals(Buffer.concat(server.given)), 'the client got what the server sent')
}

/** Random interleavings of everything that is allowed. */
export const interleavingCases: readonly ConformanceCase[] = [
  conformanceCase('random interleavings of well-behaved sides', (stage) => interleave(stage, true), {
    clientLimits: { sendTimeout: 1e9, bodyTimeout: 1e9, responseTimeout: 1e9, idleTimeout: 1e9 },
    serverLimits: { sendTimeout: 1e9, bodyTimeout: 1e9, headTimeout: 1e9, idleTimeout: 1e9 },
  }),
  conformanceCase('random interleavings with cancels and discards', (stage) => interleave(stage, false)),
]
