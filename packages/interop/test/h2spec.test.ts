/** h2spec, strict, against the server and the gateway; its client mode against the client. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Client, Response, type FetchHandler, type ServedProtocol } from 'heddle'
import { run, type Ran } from '../src/process.ts'
import { openFolder, openGateway, openServer, until } from '../src/stage.ts'
import { tool } from '../src/tools.ts'

const h2spec = tool('h2spec')
const h2specd = tool('h2specd')
const curl = tool('curl')
const quick = { timeout: 120_000 }

/** How many cases h2spec has, of a server and of a client. */
const serverCases = 146
const clientCases = 57

type Place = 'h2 alone on a port' | 'h2 and h1 on a plain port' | 'TLS' | 'client'

/**
 * Cases that are not passed, and why. Each must fail, and nothing else may: one that passes after all is
 * a failure as well. Of the cases that RFC 9113 made obsolete (those of RFC 7540's priority tree, and the
 * header fields of its upgrade) none asks for anything that harms, so they are passed.
 */
const exceptions: readonly { readonly place: Place; readonly section: string; readonly name: string; readonly reason: string }[] = [
  {
    place: 'h2 and h1 on a plain port',
    section: 'http2/3.5',
    name: 'Sends invalid connection preface',
    reason:
      'RFC 9113 §3.3: with prior knowledge on a port for both versions, what is not the preface is HTTP/1.1, answered with 400 before the close; h2spec wants nothing but the close',
  },
]

interface Case {
  readonly section: string
  readonly name: string
  /** What was wrong, or undefined. */
  readonly fault: string | undefined
}

function check(place: Place, cases: readonly Case[], count: number, ran: string): void {
  assert.equal(cases.length, count, `h2spec ran ${cases.length} cases of ${count}: ${ran}`)
  const failed = cases.filter(({ fault }) => fault !== undefined)
  const expected = exceptions.filter((one) => one.place === place)
  const title = ({ section, name }: { section: string; name: string }): string => `${section} ${name}`
  assert.deepEqual(
    failed.map(title).toSorted(),
    expected.map(title).toSorted(),
    failed.length === 0 ? 'a case that is excepted was passed' : `${failed.map((one) => `${title(one)}: ${one.fault}`).join('\n')}\n${ran}`,
  )
}

function unescaped(text: string): string {
  const named: Record<string, string> = { quot: '"', amp: '&', lt: '<', gt: '>', apos: "'" }
  return text.replace(/&(?:#(x?)([0-9a-fA-F]+)|(\w+));/g, (whole, hex: string, code: string | undefined, name: string) =>
    code === undefined ? (named[name] ?? whole) : String.fromCodePoint(parseInt(code, hex === '' ? 10 : 16)),
  )
}

function casesOfReport(xml: string): Case[] {
  return [...xml.matchAll(/<testcase package="([^"]*)" classname="([^"]*)"[^>]*>([^]*?)<\/testcase>/g)].map(([, section, name, rest]) => ({
    section: unescaped(section as string),
    name: unescaped(name as string),
    fault: /<(failure|error|skipped)/.test(rest as string) ? unescaped(rest as string) : undefined,
  }))
}

async function examine(t: TestContext, place: Place, port: number, path: string): Promise<void> {
  const report = join(path, 'report.xml')
  const words = ['--strict', '--host', '127.0.0.1', '--port', `${port}`, '--timeout', '10', '--junit-report', report]
  if (place === 'TLS') words.push('--tls', '--insecure')
  const { stdout, stderr } = await run(h2spec, words, { timeout: 110_000 })
  check(place, casesOfReport(readFileSync(report, 'utf8')), serverCases, stdout + stderr)
  t.diagnostic(stdout.trim().split('\n').at(-1) as string)
}

/** Reads all, as a handler that has an interest in content does. */
const answer: FetchHandler = async (request) => {
  await request.bytes()
  return new Response('hello world\n')
}

for (const place of ['h2 alone on a port', 'h2 and h1 on a plain port', 'TLS'] as const) {
  const protocols: ServedProtocol[] = place === 'h2 alone on a port' ? ['h2'] : ['h2', 'http/1.1']

  test(`h2spec: the server, ${place}`, quick, async (t) => {
    const folder = openFolder(t)
    const { cert, key } = folder.identity
    const server = await openServer(t, { protocols, fetch: answer, ...(place === 'TLS' && { tls: { cert, key } }) })
    await examine(t, place, server.port, folder.path)
    assert.ok(server.stats().http2.accepted > 100)
  })

  for (const protocol of ['h1', 'h2c'] as const) {
    test(`h2spec: the gateway to ${protocol}, ${place}`, quick, async (t) => {
      const folder = openFolder(t)
      const origin = await openServer(t, { fetch: answer })
      const upstream = { port: origin.port, protocol }
      const { plain, secure } = await openGateway(t, folder, upstream, { protocols: protocols.length === 1 ? '[h2]' : '[h1, h2]' })
      await examine(t, place, place === 'TLS' ? secure : plain, folder.path)
    })
  }
}

/** The cases of h2specd's output: `✔ 1: …` or `× 1: …` below the title of their section. */
function casesOfOutput(text: string): Case[] {
  const cases: Case[] = []
  let section = ''
  for (const line of text.split('Finished in')[0]?.split('Failures:')[0]?.split(/\r|\n/) ?? []) {
    section = /^ *(\d[\d.]*)\. /.exec(line)?.[1] ?? section
    const [, mark, name] = /^ *(✔|×|\S*) ?\d+: (.*)$/.exec(line) ?? []
    if (name !== undefined) cases.push({ section: `client/${section}`, name, fault: mark === '✔' ? undefined : 'see the output' })
  }
  return cases
}

/** h2specd starts a program with the URL of each case; that program, curl, has the client here ask for it. */
async function examineClient(t: TestContext, tls: boolean): Promise<void> {
  const folder = openFolder(t)
  const told: string[] = []
  const control = createServer((request, response) => {
    let url = ''
    request.setEncoding('utf8')
    request.on('data', (chunk) => (url += chunk))
    request.on('end', () => {
      void askFor(url, folder.authority).then((end) => response.end(`${told.push(end)}`))
    })
  })
  await new Promise<void>((resolve) => control.listen(0, '127.0.0.1', resolve))
  t.after(() => control.close())
  const script = join(folder.path, 'client.sh')
  const { port } = control.address() as AddressInfo
  writeFileSync(script, `#!/bin/sh\nexec '${curl}' --silent --fail --max-time 10 --data-binary "$1" http://127.0.0.1:${port}/\n`, {
    mode: 0o755,
  })
  const words = ['--strict', '--exec', script, ...(tls ? ['--tls', '--cert-file', folder.cert, '--cert-key-file', folder.key] : [])]
  const { stdout, stderr } = await onFreePorts(words)
  check('client', casesOfOutput(decoded(stdout)), clientCases, `${decoded(stdout + stderr)}\n${told.join('\n')}`)
  assert.equal(told.length, clientCases)
  t.diagnostic(/^\d+ tests, .*$/m.exec(stdout)?.[0] ?? '')
}

/** One request on a client of its own, and then until its connection is gone: h2specd looks at how it ends. */
async function askFor(url: string, ca: string): Promise<string> {
  const client = new Client({ h2c: true, protocols: ['h2'], tls: { ca } })
  let told = ''
  try {
    const response = await client.fetch(url)
    told = `${response.status} ${await response.text()}`
  } catch (error) {
    told = String(error)
  }
  // Not to be cut short by us.
  await until(() => client.stats().connections === 0, 'the end of the connection', 2500).catch(() => {})
  client.destroy()
  await client.close()
  return told
}

/** A port for each case, in a row: elsewhere, if one of them is taken. */
async function onFreePorts(words: readonly string[]): Promise<Ran> {
  for (let tries = 0; ; tries++) {
    const from = 20_000 + Math.floor(Math.random() * 12_000)
    const ran = await run(h2specd, [...words, '--from-port', `${from}`], { timeout: 110_000 })
    if (!/address already in use/.test(ran.stdout + ran.stderr) || tries === 5) return ran
  }
}

function decoded(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8')
}

test('h2spec: the client, h2c', quick, (t) => examineClient(t, false))
test('h2spec: the client, TLS', quick, (t) => examineClient(t, true))
