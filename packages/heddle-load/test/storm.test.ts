import { equal, ok } from 'node:assert/strict'
import { CancelReason } from 'heddle/http'
import { worldTest, type World } from 'heddle/testing'
import type { SocketHandler } from 'heddle/websocket'
import type { LoadOptions } from '../src/options.ts'
import type { TallyRecord } from '../src/tally.ts'
import { WorldLoad } from './rig.ts'
import { answer, echo, rawServer, type Answer } from './servers.ts'

/** Answers now, soon, late, never, wrongly, or not at all. */
function moody(world: World): Answer {
  return (exchange) => {
    const mood = world.random.integer(0, 9)
    if (mood < 5) answer(exchange, 200, 'x')
    else if (mood < 7) world.after(world.random.integer(1, 300), () => answer(exchange, 503, 'late'))
    else if (mood === 7) exchange.cancel(CancelReason.InternalError)
    else if (mood === 8) world.after(1, () => exchange.cancel(CancelReason.Refused))
  }
}

function moodySockets(world: World): SocketHandler {
  return {
    onMessage(socket, buffer, start, limit, binary) {
      const mood = world.random.integer(0, 19)
      if (mood < 15) echo.onMessage(socket, buffer, start, limit, binary)
      else if (mood === 15) socket.close(1001)
      else if (mood === 16) socket.abort()
      else if (mood === 17) socket.post('what?')
      else if (mood === 18) world.after(50, () => socket.post('late'))
    },
  }
}

function endings({ succeeded, rejected, failed, unfinished }: TallyRecord): number {
  return succeeded + rejected + failed + unfinished
}

for (const kind of ['h1', 'h2', 'websocket over h1', 'websocket over h2'] as const) {
  worldTest(`whatever a server does, every request has one end and nothing is left behind: ${kind}`, { seeds: 15 }, async (world) => {
    const { random } = world
    const isSocket = kind.startsWith('websocket')
    const protocol = kind.endsWith('h2') ? 'h2' : 'h1'
    const server = await world.complete(
      rawServer(moody(world), { clock: world, listen: world.network.serve, hostname: 'origin.test', port: 80 }, moodySockets(world)),
    )
    const options: LoadOptions = {
      url: isSocket ? 'ws://origin.test/' : 'http://origin.test/',
      protocol,
      connections: random.integer(1, 4),
      streams: protocol === 'h2' ? random.integer(1, 5) : 1,
      warmup: random.integer(0, 200),
      timeout: random.integer(20, 400),
      grace: random.integer(0, 300),
      seed: world.seed,
      ...(isSocket ? { inFlight: random.integer(1, 4) } : {}),
      ...(random.chance(0.5) ? { duration: random.integer(1, 1_500) } : { count: random.integer(1, 300) }),
      ...(random.chance(0.5) ? { rate: random.integer(10, 2_000), maxBacklog: random.integer(0, 50) } : {}),
    }
    const running = new WorldLoad(world, options)
    const { run } = running
    if (random.chance(0.2)) world.after(random.integer(0, 500), () => run.stop())
    const record = await running.record()
    const [tally] = record.tallies as [TallyRecord]
    equal(endings(tally) + record.notBegun, record.due, JSON.stringify(options))
    if (options.count !== undefined) ok(record.due <= options.count)
    equal(tally.latency.count, tally.succeeded + tally.rejected)
    ok(tally.latency.sum >= tally.service.sum - 1e-6)
    equal(run.progress.inFlight, 0)
    equal(run.progress.backlog, 0)
    const failures = [...tally.failures].filter(([code]) => code !== 'ECHO_DIFFERS')
    equal(
      failures.reduce((sum, [, { count }]) => sum + count, 0),
      tally.failed,
    )
    await world.complete(server.close({ deadline: 0 }))
    world.advance(120_000)
    equal(world.armed, 0, 'alarms left behind')
  })
}
