import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createContext, runInContext } from 'node:vm'
import { noHttp2 } from '../http2-counts.ts'
import { noHttp3 } from '../http3-counts.ts'
import { summarize, Traffic, type Snapshot } from '../metrics/index.ts'
import type { RequestRecord } from '../record.ts'
import { adminPage } from './page.ts'

/** As much of an element as the page's script touches. */
class FakeElement {
  className = ''
  title = ''
  hidden = false
  readonly attributes: Record<string, string> = {}
  children: FakeElement[] = []
  #text = ''

  get textContent(): string {
    return this.#text + this.children.map((child) => child.textContent).join('|')
  }

  set textContent(text: string) {
    this.children = []
    this.#text = text
  }

  append(...children: FakeElement[]): void {
    this.children.push(...children)
  }

  replaceChildren(...children: FakeElement[]): void {
    this.#text = ''
    this.children = children
  }

  setAttribute(name: string, value: string): void {
    this.attributes[name] = value
  }
}

function record(i: number): RequestRecord {
  return {
    startedAt: 0,
    listener: 'web',
    route: 'api',
    cluster: 'app',
    endpoint: 'h:1',
    remoteAddress: '',
    protocol: 'h1',
    upstreamProtocol: 'h1',
    method: 'GET',
    authority: '',
    path: '/a.B/C',
    status: i === 0 ? 502 : 200,
    reason: i === 0 ? 'connect_failed' : '',
    attempts: 1,
    requestSize: 0,
    responseSize: 2_048,
    duration: 12.5,
    timeToHead: 1,
    upstreamLatency: 0.5,
    upstreamDuration: 11,
    tunnel: false,
    grpc: i === 1 ? { service: 'a.B', method: 'C' } : undefined,
    grpcStatus: i === 1 ? 14 : -1,
  }
}

function snapshotOf(requests: number): Snapshot {
  const traffic = new Traffic([{ name: 'web', scheme: 'http' }])
  for (let i = 0; i < requests; i++) {
    traffic.onRequestStart('web')
    traffic.onRequestEnd(record(i))
  }
  traffic.onTunnelStart({ ...record(2), tunnel: true, requestSize: 1_024 })
  const bad = { failing: true, failuresInRow: 5, answering: false }
  const out = { name: 'h:1', active: 0, requests, failures: 1, ejections: 1, ejected: true, ...bad, waiting: 4, connections: 3, streams: 7 }
  const failing = { ...out, name: 'h:2', ejections: 0, ejected: false }
  const well = { ...failing, name: 'h:3', failing: false, failuresInRow: 0, answering: true }
  return {
    processes: [{ pid: 42, startedAt: 0, cpu: 1, memory: 5 * 2 ** 20 }],
    traffic: traffic.snapshot(),
    listeners: [
      {
        name: 'web',
        url: 'http://h:80',
        connections: 1,
        accepted: 2,
        refused: 0,
        handshakesFailed: 0,
        exchanges: 0,
        deadlines: 0,
        waiting: 0,
        http2: { ...noHttp2, connections: 1, streams: 7, frames: 10, writes: 4, resetsSent: { CANCEL: 3 } },
        http3: { ...noHttp3, connections: 2, streams: 5, datagrams: 120, writes: 30 },
      },
    ],
    clusters: [
      {
        name: 'app',
        consecutiveFailures: 5,
        active: 0,
        waiting: 0,
        connections: 3,
        tunnels: 0,
        http2: { ...noHttp2, streams: 7 },
        http3: { ...noHttp3, connections: 3, streams: 6, resetsReceived: { H3_REQUEST_CANCELLED: 2 } },
        endpoints: [out, failing, well],
      },
      {
        name: 'gone',
        consecutiveFailures: 5,
        active: 0,
        waiting: 0,
        connections: 0,
        tunnels: 0,
        http2: noHttp2,
        http3: noHttp3,
        endpoints: [failing],
      },
    ],
    accessLog: { lines: 0, dropped: 0, failures: 0 },
  }
}

test('the page draws what /metrics.json and /readyz say', async () => {
  const elements = new Map<string, FakeElement>()
  for (const [, id] of adminPage.matchAll(/id="(\w+)"/g)) elements.set(id as string, new FakeElement())
  const again: (() => unknown)[] = []
  let requests = 10
  let at = 60_000
  let ready = { status: 'ready', unusableClusters: ['gone'] }
  const answers: Record<string, () => unknown> = {
    '/metrics.json': () => JSON.parse(JSON.stringify(summarize(snapshotOf(requests), at))) as unknown,
    '/readyz': () => ready,
  }
  const context = createContext({
    document: { getElementById: (id: string) => elements.get(id), createElement: () => new FakeElement() },
    fetch: async (path: string) => ({ json: async () => answers[path]?.() }),
    setTimeout: (task: () => unknown) => again.push(task),
  })
  const drawn = async (): Promise<void> => {
    const before = again.length
    while (again.length === before) await new Promise((resolve) => setImmediate(resolve))
  }
  const text = (id: string): string => elements.get(id)?.textContent ?? ''

  const script = /<script>(.*)<\/script>/s.exec(adminPage)?.[1] as string
  runInContext(script, context)
  await drawn()
  assert.equal(text('state'), 'ready')
  assert.equal(elements.get('state')?.className, 'pill warn')
  assert.equal(elements.get('state')?.title, 'cannot be used: gone')
  assert.equal(text('about'), '1 process, up 1 min')
  assert.equal(text('total'), '10')
  assert.equal(text('p50'), '1.00 ms')
  assert.equal(text('failed'), '1')
  assert.equal(elements.get('failed')?.title, 'connect_failed 1')
  assert.match(
    text('listeners'),
    /web {2}http:\/\/h:80\|1\|0\|0\|10\|2xx 9 {2}5xx 1\|0 B\|20\.0 KiB\|1\.00 ms\|1\.00 ms\|12\.50 ms\|12\.50 ms/,
  )
  assert.equal(elements.get('streams')?.hidden, false)
  assert.match(text('http2'), /clients of web\|1\|7\|10\|2\.5\|CANCEL 3\|$/)
  assert.equal(elements.get('datagrams')?.hidden, false)
  assert.match(text('http3'), /clients of web\|2\|5\|120\|4\.0\|\|\|upstreams of app\|3\|6\|–\|–\|\|H3_REQUEST_CANCELLED 2$/)
  assert.equal(elements.get('tunnels')?.hidden, false)
  assert.match(text('tunnelled'), /api\|1\|1\|0\|1\.0 KiB\|2\.0 KiB\|–\|–\|–$/)
  assert.match(text('routes'), /api\|10\|2xx 9 {2}5xx 1\|connect_failed 1\|1\.00 ms\|1\.00 ms\|12\.50 ms/)
  assert.match(text('clusters'), /app\|.*\| {3}h:1\|out\|0\|4\|3\|10\|1\|1\|0\.50 ms\|0\.50 ms\|11\.00 ms/)
  assert.match(text('clusters'), / {3}h:2\|failing\|.*\| {3}h:3\|in\|.*\|gone\|unusable\|/)
  assert.equal(elements.get('calls')?.hidden, false)
  assert.match(text('grpc'), /a\.B\/C\|api\|1\|UNAVAILABLE 1\|12\.50 ms/)
  assert.match(text('processes'), /42\|1\.00 s\|5\.0 MiB/)

  requests = 30
  at += 2_000
  ready = { status: 'ready', unusableClusters: [] }
  await again[0]?.()
  assert.equal(elements.get('state')?.className, 'pill good')
  assert.equal(elements.get('state')?.title, '')
  assert.equal(text('rate'), '10')
  assert.equal(text('peak'), 'requests/s, last two minutes, peak 10')
  assert.match(elements.get('line')?.attributes['d'] ?? '', /^M0\.0 6\.0$/)

  ready = { status: 'down', unusableClusters: ['app', 'gone'] }
  await again[0]?.()
  assert.equal(elements.get('state')?.className, 'pill bad')

  answers['/readyz'] = () => {
    throw new Error('gone')
  }
  await again[0]?.()
  assert.equal(text('state'), 'not reachable')
})

/** Columns of the tiles in a window of so many px, by the page's style: the last rule that applies. */
function columnsAt(width: number): number {
  const style = /<style>(.*)<\/style>/s.exec(adminPage)?.[1] as string
  let columns = 0
  for (const line of style.split('\n')) {
    const count = /\.cards \{[^}]*grid-template-columns: repeat\((\d+),/.exec(line)?.[1]
    const limit = Number(/@media \(max-width: (\d+)px\)/.exec(line)?.[1] ?? Infinity)
    if (count !== undefined && width <= limit) columns = Number(count)
  }
  return columns
}

test('the tiles fill their rows in every window', () => {
  const tiles = [...adminPage.matchAll(/<div class="card">/g)].length
  const widths = [320, 560, 561, 800, 1_079, 1_080, 1_200, 3_000]
  assert.deepEqual(
    widths.map((width) => columnsAt(width)),
    [2, 2, 3, 3, 3, 6, 6, 6],
  )
  for (const width of widths) assert.equal(tiles % columnsAt(width), 0)
  assert.match(adminPage, /\n\.card b \{[^}]*white-space: nowrap[ ;}]/, 'and a number its line')
})
