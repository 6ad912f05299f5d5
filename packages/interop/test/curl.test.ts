/** curl: HTTP/1.1, HTTP/2 by prior knowledge and by ALPN, against the server and the gateway. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { content, sumOf } from '../src/application.ts'
import { run, runWell } from '../src/process.ts'
import { tool } from '../src/tools.ts'
import { openPlace, places } from '../src/web-stage.ts'

const program = tool('curl')
const quick = { timeout: 60_000 }

const ways = ['--http1.1', '--http2-prior-knowledge', '--http1.1 over TLS', '--http2 by ALPN'] as const

for (const place of places) {
  for (const way of ways) {
    test(`curl and ${place}: ${way}`, quick, async (t) => {
      const open = await openPlace(t, place)
      const { folder } = open
      const isSecure = way.includes('TLS') || way.includes('ALPN')
      const base = isSecure ? open.secure : open.plain
      const words = ['--silent', '--show-error', '--max-time', '20', '--cacert', folder.ca, way.split(' ')[0] as string]
      const curl = (...more: string[]): Promise<string> => runWell(program, [...words, ...more])
      const version = way.startsWith('--http2') ? 'h2' : 'h1'
      const reached = open.reached(version)
      const file = join(folder.path, 'content')
      const got = join(folder.path, 'got')
      writeFileSync(file, content)

      assert.equal(await curl('--write-out', ' %{http_version}', `${base}/hello`), `GET ${reached} ${version === 'h2' ? '2' : '1.1'}`)
      assert.equal(await curl('--request', 'PATCH', '--data', 'x', `${base}/hello`), `PATCH ${reached}`)
      assert.equal(await curl('--cookie', 'a=1; b=2', `${base}/fields`), 'a=1; b=2')
      assert.match(await curl('--head', `${base}/big`), /^content-length: 2000000\r$/im)
      for (const path of ['big', 'stream']) {
        await curl('--output', got, `${base}/${path}`)
        assert.ok(readFileSync(got).equals(content), path)
      }
      // Part of it, then the rest of the connection's life.
      assert.equal((await run(program, [...words, '--max-filesize', '1000', '--output', got, `${base}/big`])).status, 63)
      assert.equal(await curl('--data-binary', `@${file}`, `${base}/sum`), sumOf(content))
      assert.equal(await curl('--upload-file', file, '--header', 'transfer-encoding: chunked', `${base}/sum`), sumOf(content))
      assert.equal(await curl('--form', `file=@${file}`, '--output', got, '--write-out', '%{http_code}', `${base}/echo`), '200')
      assert.ok(readFileSync(got).includes(content), 'multipart/form-data comes back')
      const expecting = ['--header', 'expect: 100-continue', '--expect100-timeout', '10', '--dump-header', '-']
      assert.match(await curl(...expecting, '--data-binary', `@${file}`, `${base}/sum`), /^HTTP\/\S+ 100 [^]*HTTP\/\S+ 200 /)
      // Answered without being read. Over HTTP/2 curl 7.88 loses an answer that comes before its upload has ended, those of other servers too.
      assert.equal(await curl('--data', 'unread', `${base}/hello`), `POST ${reached}`)
      if (version === 'h1')
        assert.match(await curl(...expecting, '--data-binary', `@${file}`, `${base}/hello`), /^HTTP\/\S+ 200 [^]*POST h[12]$/)
      assert.match(
        await curl('--include', `${base}/hints`),
        /^HTTP\/\S+ 103 [^]*link: <\/a\.css>; rel=preload\r\n\r\nHTTP\/\S+ 200 [^]*hinted$/,
      )
      assert.match(await curl('--include', `${base}/trailers`), /\r\n\r\nsummed(x-sum: 42)?/)
      assert.notEqual((await run(program, [...words, `${base}/break`])).status, 0)
      const many = Array.from({ length: 30 }, (_, i) => `${base}/hello?${i}`)
      assert.equal(await curl('--parallel', '--parallel-immediate', '--parallel-max', '30', ...many), `GET ${reached}`.repeat(30))
      // Nor does curl 7.88 use a connection twice that it made with prior knowledge.
      if (way !== '--http2-prior-knowledge') {
        const before = (await open.accepted())[isSecure ? 'secure' : 'plain']
        assert.equal(await curl(...many), `GET ${reached}`.repeat(30))
        assert.equal((await open.accepted())[isSecure ? 'secure' : 'plain'] - before, 1, 'one after the other: on one connection')
      }
      assert.deepEqual(await open.resetsSent(), version === 'h2' ? { INTERNAL_ERROR: 1 } : {}, 'nothing was reset but /break')
    })
  }
}
