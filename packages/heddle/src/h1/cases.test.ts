import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { requestHead } from '../http/index.ts'
import { client, request, server, type Bench } from './transcript.test.ts'

/*
 * The cases of cases/*.md: bytes and the calls that come of them, side by side. Every case runs whole,
 * byte by byte, cut in two at every place, and cut off at every place.
 */

interface Case {
  readonly name: string
  readonly input: string
  /** The input ends with the peer's FIN. */
  readonly fin: boolean
  readonly calls: string
}

type Subject = Bench<Parameters<typeof request>[0]['engine']> | ReturnType<typeof server>

/** `## name`, then a block of bytes, then a block of calls. */
function readCases(file: string): Case[] {
  const text = readFileSync(new URL(`cases/${file}`, import.meta.url), 'utf8')
  return [...text.matchAll(/^## (.+)\n[^]*?^```http\n([^]*?)^```\n\n?```calls\n([^]*?)^```/gm)].map((match) => {
    const [, name, block, calls] = match as unknown as [string, string, string, string]
    const fin = block.endsWith('<FIN>\n')
    return { name, input: readInput(fin ? block.slice(0, -6) : block), fin, calls }
  })
}

/** A line ends with CRLF, or with nothing after a final backslash; \r \n \t \0 and \xNN stand for themselves. */
function readInput(block: string): string {
  return block
    .replaceAll('\n', '\r\n')
    .replaceAll('\\\r\n', '')
    .replaceAll(
      /\\(r|n|t|0|x[0-9a-f]{2})/g,
      (_, code: string) => ({ r: '\r', n: '\n', t: '\t', 0: '\0' })[code] ?? String.fromCharCode(parseInt(code.slice(1), 16)),
    )
}

function outcome(bench: Subject): string {
  for (const log of bench.log.exchanges) log.flush()
  const exchanges = bench.log.exchanges.map(({ lines }) => lines.join('\n'))
  // A slot that was free for a moment, before more bytes came, depends on how they came.
  const events = bench.closing === 'no' ? bench.log.lines : bench.log.lines.filter((line) => !line.startsWith('capacity'))
  const own = events.length > 0 ? [`connection: ${events.join(', ')}`] : []
  const answers = bench.answers.length > 0 ? [`answers: ${bench.answers.join(', ')}`] : []
  return `${[...exchanges, ...answers, ...own, `closing: ${bench.closing}`].join('\n')}\n`
}

function run(file: string, start: (name: string) => Subject): void {
  describe(file, () => {
    for (const { name, input, fin, calls } of readCases(file)) {
      const at = (...cuts: number[]): string => {
        const bench = start(name).feed(input, ...cuts)
        if (fin) bench.feedEnd()
        return outcome(bench)
      }
      test(name, () => {
        assert.equal(at(), calls)
        // Once more, since caches and memos know it now.
        assert.equal(at(), calls, 'the second time')
        assert.equal(at(...Array.from({ length: input.length }, (_, i) => i)), calls, 'byte by byte')
        for (let cut = 1; cut < input.length; cut++) assert.equal(at(cut), calls, `cut at ${cut}`)
      })
      test(`${name}: cut off anywhere`, () => {
        const whole = start(name).feed(input)
        for (let length = 0; length < input.length; length++) {
          const bench = start(name).feed(input.slice(0, length))
          for (const [i, log] of bench.log.exchanges.entries()) {
            const full = whole.log.exchanges[i]
            assert.ok(full !== undefined && full.received >= log.received, 'no more than of the whole')
            assert.ok(full.ended || !log.ended || full.error !== undefined, 'no end that the whole does not have')
          }
          bench.feedEnd()
          for (const log of bench.log.exchanges) assert.equal(log.closed, 1, `onClose once, cut off at ${length}`)
          bench.advance(1_000_000)
          assert.equal(bench.log.closed, 1, `the connection ends, cut off at ${length}`)
          assert.equal(bench.engine.deadline, Infinity)
        }
      })
    }
  })
}

run('requests.md', () => server())
run('request-content.md', () => server())
run('responses.md', (name) => {
  const bench = client()
  const method = /^(GET|HEAD|CONNECT)/.exec(name)?.[0] ?? 'GET'
  const log = request(
    bench,
    requestHead(method, 'http', method === 'CONNECT' ? 'a.test:1' : 'a.test', method === 'CONNECT' ? '' : '/'),
    method !== 'CONNECT',
  )
  if (method === 'CONNECT')
    log.on = { onData: (_buffer, _start, _limit, end) => end && log.exchange?.sendData(Buffer.alloc(0), 0, 0, true) }
  bench.flush()
  bench.wire = ''
  return bench
})
