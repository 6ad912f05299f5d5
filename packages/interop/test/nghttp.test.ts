/** nghttp, and h2load as a client of many streams, against the server and the gateway. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { content, sumOf } from '../src/application.ts'
import { runWell } from '../src/process.ts'
import { tool } from '../src/tools.ts'
import { openPlace, places } from '../src/web-stage.ts'

const program = tool('nghttp')
const loader = tool('h2load')
const quick = { timeout: 60_000 }

for (const place of places) {
  for (const way of ['h2c', 'TLS'] as const) {
    test(`nghttp and ${place}: ${way}`, quick, async (t) => {
      const open = await openPlace(t, place)
      const base = way === 'TLS' ? open.secure : open.plain
      const file = join(open.folder.path, 'content')
      writeFileSync(file, content)
      const nghttp = (...words: string[]): Promise<string> => runWell(program, ['--timeout=20', '--no-verify-peer', ...words])
      const hello = `GET ${open.reached('h2')}`
      assert.equal(await nghttp(`${base}/hello`), hello)
      for (const path of ['big', 'stream']) {
        assert.equal(sumOf(Buffer.from(await nghttp(`${base}/${path}`), 'latin1')), sumOf(content), path)
      }
      assert.equal(await nghttp(`--data=${file}`, `${base}/sum`), sumOf(content))
      // Padded frames, small windows, no dynamic table, many streams, content without a length.
      assert.equal(
        await nghttp('--padding=200', '--window-bits=10', '--header-table-size=0', '--multiply=20', `${base}/hello`),
        hello.repeat(20),
      )
      const small = await nghttp('--window-bits=10', '--connection-window-bits=12', '--max-concurrent-streams=3', `${base}/big`)
      assert.equal(sumOf(Buffer.from(small, 'latin1')), sumOf(content))
      assert.equal(await nghttp('--no-content-length', '--padding=100', `--data=${file}`, `${base}/sum`), sumOf(content))
      assert.equal(await nghttp('--expect-continue', `--data=${file}`, `${base}/sum`), sumOf(content))
      assert.equal(await nghttp('--trailer=x-sent: late', `--data=${file}`, '--header=te: trailers', `${base}/trailers`), 'summed')
      const log = await nghttp('--verbose', '--null-out', `${base}/trailers`)
      assert.match(log, /x-sum: 42/)
      assert.match(log, /SETTINGS_MAX_CONCURRENT_STREAMS\(0x03\):100/)
      assert.doesNotMatch(log, /ENABLE_CONNECT_PROTOCOL|0x08/, 'extended CONNECT is not offered unasked')
      assert.match(
        await nghttp('--verbose', '--null-out', `${base}/hints`),
        /:status: 103[^]*link: <\/a\.css>; rel=preload[^]*:status: 200/,
      )
      assert.deepEqual(await open.resetsSent(), {})
    })

    test(`h2load and ${place}: ${way}`, quick, async (t) => {
      const open = await openPlace(t, place)
      const base = way === 'TLS' ? open.secure : open.plain
      const load = async (requests: number, ...words: string[]): Promise<void> => {
        const printed = await runWell(loader, ['--requests', `${requests}`, ...words])
        assert.match(printed, new RegExp(`\\b${requests} succeeded, 0 failed, 0 errored, 0 timeout`), printed)
        assert.match(printed, new RegExp(`status codes: ${requests} 2xx, 0 3xx`), printed)
      }
      await load(5000, '--clients=4', '--max-concurrent-streams=100', `${base}/hello`, `${base}/fields`, `${base}/trailers`)
      await load(60, '--clients=3', '--max-concurrent-streams=20', '--window-bits=16', `${base}/big`)
      const file = join(open.folder.path, 'content')
      writeFileSync(file, content.subarray(0, 100_000))
      await load(200, '--clients=2', '--max-concurrent-streams=50', `--data=${file}`, `${base}/sum`)
      assert.deepEqual(await open.accepted(), { plain: way === 'TLS' ? 0 : 9, secure: way === 'TLS' ? 9 : 0 })
      assert.deepEqual(await open.resetsSent(), {})
    })
  }
}
