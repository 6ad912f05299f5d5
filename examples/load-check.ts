// Fails if a server is too slow, as a CI job would: `npm run example -- load-check [URL]`.
// Without a URL it asks http://localhost:8080, where the example server-hello listens.
import { reportOf, run } from 'heddle-load'

const result = await run({
  url: process.argv[2] ?? 'http://localhost:8080/',
  rate: 200,
  connections: 4,
  count: 400,
  failIf: ['p99>5s', 'errors>0'],
})
console.log(reportOf(result))
for (const { threshold, failed, reason } of result.thresholds) console.log(failed ? 'too bad:' : 'fine:', threshold, `(${reason})`)
process.exitCode = result.thresholds.some(({ failed }) => failed) ? 1 : 0
