/** Go's github.com/coder/websocket: its client with heddle's server, heddle's client with its server. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Running, runWell } from '../src/process.ts'
import { tool } from '../src/tools.ts'
import { farewells, target } from '../src/websocket-standard.ts'
import {
  checkFound,
  checkSize,
  conversations,
  openEchoServer,
  pingCount,
  serverStory,
  type ConversationKind,
  type Found,
} from '../src/websocket-stories.ts'

const program = tool('websocket')
const quick = { timeout: 60_000 }

/** What a side of Go's found, as it prints it. */
interface GoFound {
  readonly Received: number
  readonly Fault: string
  readonly Protocol: string
  readonly Code: number
  readonly Reason: string
  readonly Pings: number
  readonly Pongs: number
  readonly Read: number
  readonly Written: number
}

function check(line: string, [, closer, count]: ConversationKind): GoFound {
  const found = JSON.parse(line) as GoFound
  const { code, reason } = farewells[closer]
  const { Read: _read, Written: _written, ...rest } = found
  const pings = pingCount(count)
  assert.deepEqual(rest, { Received: count, Fault: '', Protocol: 'weave.v2', Code: code, Reason: reason, Pings: pings, Pongs: pings })
  return found
}

async function clientStory(t: TestContext, kind: ConversationKind): Promise<void> {
  const [deflate, closer, count] = kind
  const { server, found } = await openEchoServer(t, deflate)
  const url = target(server.url.replace('http', 'ws'), count, closer)
  check(
    Buffer.from(await runWell(program, ['client', '-url', url, '-deflate', deflate, '-count', String(count)]), 'latin1').toString(),
    kind,
  )
  assert.equal(found.length, 1)
  const { version, pongs, ...rest } = await (found[0] as Promise<Found>)
  checkFound(rest, 'server', kind)
  assert.deepEqual({ version, pongs }, { version: 'h1', pongs: pingCount(count) })
  const { bytesRead, bytesWritten } = server.stats()
  checkSize(bytesRead, count, deflate !== 'off')
  checkSize(bytesWritten, count, deflate !== 'off')
}

async function tellServerStory(t: TestContext, kind: ConversationKind): Promise<void> {
  const [deflate, , count] = kind
  const server = new Running(t, program, ['server', '-deflate', deflate])
  const [, port] = await server.prints(/^ready (\d+)$/m)
  await serverStory(t, kind, Number(port))
  const [line] = await server.prints(/^\{.*\}$/m)
  const { Read, Written } = check(Buffer.from(line, 'latin1').toString(), kind)
  checkSize(Read, count, deflate !== 'off')
  checkSize(Written, count, deflate !== 'off')
}

for (const kind of conversations) {
  const [deflate, closer, count] = kind
  const name = `${count} messages, deflate ${deflate}, the ${closer} closes`
  test(`the client of coder/websocket: ${name}`, quick, (t) => clientStory(t, kind))
  test(`the server of coder/websocket: ${name}`, quick, (t) => tellServerStory(t, kind))
}
