import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { formatProblem, loadConfig, parseConfig, type ConfigProblem } from './index.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

function onWarning(problem: ConfigProblem): void {
  assert.fail(formatProblem(problem))
}

test('the example is valid, and what is commented out shows the defaults', () => {
  const path = `${root}examples/gateway.yaml`
  const config = loadConfig(path, { onWarning })
  assert.deepEqual(
    config.routes.map(({ name }) => name),
    ['api', 'greeter', 'events', 'everything-else'],
  )
  // Keys that are commented out with their default, and need no file.
  const shown = readFileSync(path, 'utf8').replace(
    /^( *)# ((?:host|via|forwarded|upgrades|protocols?|http2|http3|extendedConnect|\w+Timeout|\w+Interval|max\w+|tunnelGrace): .*)$/gm,
    '$1$2',
  )
  assert.notEqual(shown, readFileSync(path, 'utf8'))
  assert.deepEqual(parseConfig(shown, { folder: `${root}examples` }), config)
})

for (const name of ['README.md', 'docs/gateway.md']) {
  test(`configurations in ${name} are valid`, () => {
    const blocks = [...readFileSync(`${root}${name}`, 'utf8').matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text as string)
    assert.ok(blocks.length > 0)
    for (const text of blocks) parseConfig(text, { file: name, onWarning })
  })
}
