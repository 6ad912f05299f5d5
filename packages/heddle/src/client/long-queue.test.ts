/** Ten thousand requests wait while everything around them changes. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { CancelReason, requestHead, responseHead, type Exchange, type HeddleError } from '../http/index.ts'
import { worldTest } from '../testing/index.ts'
import { Client } from './client.ts'
import type { ClientExchangeHandler, Ticket } from './ticket.ts'
import { serveStreams, type WorldStreams } from './world-server.test.ts'

const site = 'https://origin.test'
const count = 10_000

class Waiter implements ClientExchangeHandler {
  readonly replayable = true
  readonly path: string
  readonly urgency: number
  ticket: Ticket | undefined
  status = 0
  closes = 0
  error: HeddleError | undefined
  cancelled = false

  constructor(path: string, urgency: number) {
    this.path = path
    this.urgency = urgency
  }

  onOpen(exchange: Exchange): void {
    exchange.setPriority({ urgency: this.urgency, incremental: false })
    exchange.sendHead(requestHead('GET', 'https', 'origin.test', this.path), true)
  }
  onHead(head: { readonly status: number }): void {
    this.status = head.status
  }
  onData(): void {}
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    this.closes++
    this.error = error
  }

  cancel(): void {
    this.cancelled = true
    this.ticket?.cancel(CancelReason.Cancelled)
  }
}

worldTest('10,000 wait: each ends once, whatever the server allows and loses, and nothing is left', { seeds: 3 }, async (world) => {
  const { random } = world
  const runs = new Map<string, number>()
  let busy = true
  const connections = serveStreams(
    world,
    'origin.test',
    443,
    ({ exchange, head }) => {
      const path = head?.path as string
      runs.set(path, (runs.get(path) ?? 0) + 1)
      world.after(random.integer(0, 3), () => exchange.sendHead(responseHead(204), true))
    },
    { limits: { maxConcurrentStreams: 400, resetBurst: 20_000 } },
  )
  const last = (): WorldStreams | undefined => connections.at(-1)
  const disturb = (): void => {
    if (!busy) return
    const kind = random.integer(0, 19)
    if (kind === 0) last()?.socket.resetAndDestroy()
    else if (kind === 1) last()?.engine.shutdown()
    else last()?.write({ type: 'SETTINGS', ack: false, settings: [[3, random.pick([0, 1, 10, 100, 400])]] })
    world.after(random.integer(1, 20), disturb)
  }
  world.after(5, disturb)

  const client = new Client({ clock: world, connect: world.network.dial, whenFull: 'queue', http2: { idleTimeout: 1000 } })
  const controller = new AbortController()
  let [answered, aborted] = [0, 0]
  const fetches: Promise<void>[] = []
  const waiters: Waiter[] = []
  const queueTimeouts = new Set<Waiter>()
  for (let i = 0; i < count; i++) {
    if (i % 10 === 0) {
      const signal = i % 20 === 0 ? controller.signal : undefined
      const fetched = client.fetch(`${site}/fetch/${i}`, signal === undefined ? {} : { signal }).then(
        ({ status }) => {
          assert.equal(status, 204)
          answered++
        },
        (error: unknown) => {
          if (error === controller.signal.reason) aborted++
          // A lost connection had the request, and may have acted on it.
          else assert.match(String(error), /\(https:\/\/origin\.test\)$/)
        },
      )
      fetches.push(fetched)
      continue
    }
    const waiter = new Waiter(`/${i}`, random.integer(0, 7))
    waiters.push(waiter)
    if (i % 7 === 0) queueTimeouts.add(waiter)
    waiter.ticket = client.exchange(site, waiter, i % 7 === 0 ? { queueTimeout: random.integer(1, 200) } : {})
    if (i % 3 === 0) world.after(random.integer(0, 100), () => waiter.cancel())
  }
  assert.ok(client.stats().waiting >= count * 0.9)
  world.after(40, () => controller.abort(new Error('enough')))
  world.advance(300)
  busy = false
  // Whatever was allowed last must not be the end of it.
  last()?.write({ type: 'SETTINGS', ack: false, settings: [[3, 400]] })
  await world.complete(Promise.all(fetches))
  await world.complete(client.close())

  assert.deepEqual([getEventListeners(controller.signal, 'abort').length, answered > 0, aborted > 0], [0, true, true])
  const outcomes = new Map<string, number>()
  for (const waiter of waiters) {
    const { path, closes, error, cancelled } = waiter
    assert.equal(closes, 1, path)
    const ran = runs.get(path) ?? 0
    assert.ok(ran <= 1, `${path} ran ${ran} times`)
    if (error === undefined) assert.deepEqual([waiter.status, ran], [204, 1], path)
    else if (error.unprocessed) assert.equal(ran, 0, path)
    if (error?.code === 'CANCELLED') assert.ok(cancelled, path)
    if (error?.code === 'QUEUE_TIMEOUT') assert.ok(queueTimeouts.has(waiter), path)
    const outcome = error?.code ?? 'answered'
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  }
  assert.ok((outcomes.get('answered') ?? 0) > 100 && (outcomes.get('CANCELLED') ?? 0) > 100, JSON.stringify([...outcomes]))
  const { connections: open, idle, active, draining, dialling, waiting, streams, timers } = client.stats()
  assert.deepEqual([open, idle, active, draining, dialling, waiting, streams, timers], [0, 0, 0, 0, 0, 0, 0, 0])
  world.advance(200_000)
  assert.equal(world.armed, 0)
  for (const { engine } of connections) assert.equal(engine.openExchanges, 0)
})
