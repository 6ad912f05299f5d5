/** A program that is written for ws, unchanged but for what it imports: on Node's server, on heddle's, and on heddle alone. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { Client } from 'heddle'
import { connect, HandshakeError, type ConnectOptions, type Socket } from 'heddle/websocket'
import { WebSocket as Ws } from 'ws'

const folder = join(import.meta.dirname, '../programs')

/** How the program's imports are changed. */
const moves = {
  'node:http and ws': (text: string) => text,
  'heddle/node and ws': (text: string) => text.replace(`from 'node:http'`, `from 'heddle/node'`),
  'heddle alone': (text: string) =>
    text
      .replace(`from 'node:http'`, `from 'heddle/node'`)
      .replace(`import WebSocket, { WebSocketServer } from 'ws'`, `import { WebSocket, WebSocketServer } from 'heddle/websocket'`),
} as const

/** Runs the program; `use` gets its port and the lines it prints. */
async function running(move: keyof typeof moves, use: (port: number, lines: string[]) => Promise<void>): Promise<void> {
  const place = await mkdtemp(join(folder, 'moved-'))
  const text = await readFile(join(folder, 'rooms.mjs'), 'utf8')
  const moved = moves[move](text)
  assert.equal(moved === text, move === 'node:http and ws')
  await writeFile(join(place, 'rooms.mjs'), moved)
  const child = spawn(process.execPath, ['--conditions=@heddle/source', join(place, 'rooms.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), 25_000)
  try {
    const output = createInterface({ input: child.stdout })
    const [port] = (await once(output, 'line')) as [string]
    const lines: string[] = []
    output.on('line', (line) => lines.push(line))
    await use(Number(port), lines)
    child.kill('SIGTERM')
    assert.deepEqual(await exited, [0, null], 'ends by itself once it was told to stop')
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
    await exited
    await rm(place, { recursive: true })
  }
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < end, `waited for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

async function tell(move: keyof typeof moves, version: 'h1' | 'h2'): Promise<void> {
  await running(move, async (port, lines) => {
    const client = new Client(version === 'h2' ? { h2c: true, protocols: ['h2'] } : {})
    const visit = async (path: string, options: ConnectOptions = {}): Promise<Socket> => {
      const socket = await connect(`ws://127.0.0.1:${port}${path}`, { client, ...options })
      assert.equal(socket.version, version)
      return socket
    }
    const refused = async (path: string): Promise<unknown> => visit(path).catch((error: unknown) => error)

    assert.equal(await (await client.fetch(`http://127.0.0.1:${port}/`)).text(), 'rooms: /lounge, /kitchen\n')
    const unknown = await refused('/lounge')
    assert.ok(unknown instanceof HandshakeError && unknown.status === 401, String(unknown))
    assert.ok((await refused('/cellar?name=ada')) instanceof Error)

    const ada = await visit('/lounge?name=ada', { protocols: ['chat.v1', 'chat.v2'] })
    const bob = await visit('/lounge?name=bob', { deflate: false })
    const eve = await visit('/kitchen?name=eve')
    assert.deepEqual([ada.protocol, bob.protocol, ada.extensions.split(';')[0], bob.extensions], ['chat.v2', '', 'permessage-deflate', ''])
    await ada.write('who')
    assert.deepEqual(JSON.parse((await ada.read()) as string), {
      name: 'ada',
      room: '/lounge',
      from: '127.0.0.1',
      count: 2,
      protocol: 'chat.v2',
    })
    // Text and bytes, small and large enough to be compressed, reach the others as they are.
    for (const message of ['hello', 'ä'.repeat(20_000), new Uint8Array([1, 2, 3]), new Uint8Array(90_000).fill(7)]) {
      await ada.write(message)
      assert.deepEqual(await bob.read(), message)
      await bob.write(message)
      assert.deepEqual(await ada.read(), message)
    }
    await bob.write('throw me out')
    assert.deepEqual([(await bob.closed).code, (await bob.closed).reason], [4001, 'out'])
    await ada.write('x'.repeat(100_001))
    assert.equal((await ada.closed).code, 1009)
    // Pings are answered: nobody is thrown out meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 700))
    await eve.write('who')
    assert.match((await eve.read()) as string, /"name":"eve"/)
    await until(() => lines.length === 2, 'both have left')
    assert.deepEqual(lines.splice(0).sort(), ['ada left /lounge: 1006 ', 'bob left /lounge: 4001 '])
    if (version === 'h1') await withTheirClient(port)

    process.nextTick(() => client.close())
  })
}

/** The client of ws, which takes headers and pings besides. */
async function withTheirClient(port: number): Promise<void> {
  const socket = new Ws(`ws://127.0.0.1:${port}/kitchen?name=ws`)
  // Whoever waits for something else hears of an early end.
  socket.on('close', (code) => socket.emit('error', new Error(`closed early: ${code}`)))
  const pinged = once(socket, 'ping')
  const [[response]] = (await Promise.all([once(socket, 'upgrade'), once(socket, 'open')])) as [
    [{ headers: Record<string, string> }],
    void[],
  ]
  assert.equal(response.headers['x-room'], '/kitchen')
  await pinged
  socket.send('who')
  const [data] = (await once(socket, 'message')) as [Buffer]
  assert.match(data.toString(), /"name":"ws"/)
  socket.removeAllListeners('close')
  socket.terminate()
}

for (const move of Object.keys(moves) as (keyof typeof moves)[]) {
  for (const version of ['h1', 'h2'] as const) {
    if (version === 'h1' || move !== 'node:http and ws') test(`${move} (${version})`, { timeout: 30_000 }, () => tell(move, version))
  }
}
