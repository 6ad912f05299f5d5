import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layerFaults } from './check-layers.ts'
import { purityFaults } from './check-purity.ts'
import { importsOf } from './sources.ts'

const h1 = 'packages/heddle/src/h1/parser.ts'

test('a folder may import the index of a folder below it', () => {
  assert.deepEqual(layerFaults(h1, "import { Head } from '../http/index.ts'\n"), [])
})

test('importing upwards, a sibling, or past the door is a fault that names file and line', () => {
  assert.match(layerFaults(h1, "\nimport { serve } from '../server/index.ts'\n")[0] ?? '', /parser\.ts:2: h1\/ may not import server\//)
  assert.match(
    layerFaults('packages/heddle/src/client/pool.ts', "import { serve } from '../server/index.ts'")[0] ?? '',
    /may not import server/,
  )
  assert.match(layerFaults(h1, "import { Head } from '../http/head.ts'")[0] ?? '', /outsiders import http\/index\.ts only/)
})

test('type imports and re-exports over several lines count too', () => {
  assert.equal(layerFaults(h1, "export {\n  a,\n  b,\n} from '../client/index.ts'").length, 1)
  assert.equal(layerFaults(h1, "import type { A } from '../client/index.ts'").length, 1)
})

test('heddle takes no package; a test may take fast-check and testing/', () => {
  assert.equal(layerFaults(h1, "import yaml from 'yaml'").length, 1)
  assert.deepEqual(
    layerFaults('packages/heddle/src/h1/parser.test.ts', "import fc from 'fast-check'\nimport { World } from '../testing/index.ts'"),
    [],
  )
})

test('the gateway sees public entries only', () => {
  const path = 'packages/heddle-gateway/src/proxy/forward.ts'
  assert.deepEqual(layerFaults(path, "import { Client } from 'heddle/client'"), [])
  assert.equal(layerFaults(path, "import { Client } from '../../../heddle/src/client/index.ts'").length, 1)
})

test('clock, timer, randomness, node: and await are impure; their names in comments and strings are not', () => {
  assert.equal(purityFaults(h1, 'const t = performance.now()').length, 1)
  assert.equal(purityFaults(h1, 'x = Date.now() + Math.random()').length, 2)
  assert.equal(purityFaults(h1, 'crypto.getRandomValues(octets)').length, 1)
  assert.deepEqual(purityFaults(h1, 'this.crypto.random(8)'), [], 'what was handed in')
  assert.equal(purityFaults(h1, "import net from 'node:net'").length, 1)
  assert.deepEqual(purityFaults(h1, "// await Date\nconst name = 'Date' /* performance */"), [])
})

test('importsOf finds the line of each', () => {
  assert.deepEqual(
    importsOf("// import 'no'\nimport a from 'a'\nimport('b')").map((entry) => [entry.line, entry.target]),
    [
      [2, 'a'],
      [3, 'b'],
    ],
  )
})
