import { deepEqual, equal, throws } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { makePlan } from './make-plan.ts'
import { loadScenario } from './scenario.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-load-'))
after(() => rmSync(folder, { recursive: true }))

function file(text: string, name = 'load.yaml'): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

test('requests with everything', () => {
  file('from a file', 'body.txt')
  const { url, headers, requests } = loadScenario(
    file(`
url: http://localhost:8080
headers: { accept: text/plain, x-number: 3, x-list: [a, b] }
requests:
  - url: /items
    weight: 8
  - { name: create, url: /items, method: POST, body: '{"a":1}', accept: 201 }
  - { url: /upload, bodyFile: body.txt, accept: [200, 4xx] }
  - { url: /bytes, bodyHex: 'DE ad be ef' }
  - { url: /large, bodySize: 1KiB }
`),
  )
  deepEqual([url, headers], ['http://localhost:8080', { accept: 'text/plain', 'x-number': '3', 'x-list': ['a', 'b'] }])
  deepEqual(requests, [
    { url: '/items', weight: 8 },
    { name: 'create', url: '/items', method: 'POST', body: '{"a":1}', accept: 201 },
    { url: '/upload', accept: [200, '4xx'], body: Buffer.from('from a file') },
    { url: '/bytes', body: Buffer.from('deadbeef', 'hex') },
    { url: '/large', bodySize: 1_024 },
  ])
  equal(makePlan({ url, headers, requests }).requests.length, 5)
})

test('JSON does as well', () => {
  const { requests } = loadScenario(file('{ "requests": [ { "url": "http://a.test/", "weight": 2.5 } ] }', 'load.json'))
  deepEqual(requests, [{ url: 'http://a.test/', weight: 2.5 }])
})

describe('what is wrong is told with its place', () => {
  const faults: readonly [string, string, string][] = [
    [
      'no YAML',
      'requests: [',
      'load.yaml:1:12: not valid YAML or JSON: Flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
    ['nothing', '', 'load.yaml:1:1: found nothing, expected a mapping'],
    ['no mapping', '- a', 'load.yaml:1:1: found a list, expected a mapping'],
    ['no requests', 'url: http://x/', 'load.yaml:1:1: requests: found nothing, expected a list of requests'],
    ['an empty list', 'requests: []', 'load.yaml:1:11: requests: found an empty list, expected a list with at least one request'],
    ['an unknown key', 'requests:\n  - { ulr: /x }', 'load.yaml:2:7: requests[0].ulr: unknown key; did you mean "url"?'],
    ['a stranger', 'requests: [{}]\nrate: 3', 'load.yaml:2:1: rate: unknown key; known here: url, headers, requests'],
    ['a weight', 'requests:\n  - url: /x\n    weight: much', 'load.yaml:3:13: requests[0].weight: found "much", expected a number above 0'],
    ['a size', 'requests: [{ bodySize: 5 }]', 'load.yaml:1:24: requests[0].bodySize: found 5, expected a size such as 512B, 64KiB or 10MB'],
    [
      'a size in words',
      'requests: [{ bodySize: big }]',
      'load.yaml:1:24: requests[0].bodySize: found "big", expected a size such as 512B, 64KiB or 10MB',
    ],
    ['digits', 'requests: [{ bodyHex: abc }]', 'load.yaml:1:23: requests[0].bodyHex: found "abc", expected pairs of hexadecimal digits'],
    [
      'headers',
      'requests: [{ headers: [a] }]',
      'load.yaml:1:23: requests[0].headers: found a list, expected a mapping of names and values',
    ],
    ['a header', 'headers: { a: {} }\nrequests: [{}]', 'load.yaml:1:15: headers.a: found an object, expected a text, or a list of texts'],
    [
      'two bodies',
      'requests: [{ body: a, bodySize: 1B }]',
      'load.yaml:1:12: requests[0]: has more than one of body, bodyFile, bodyHex and bodySize',
    ],
  ]
  for (const [name, text, message] of faults) {
    test(name, () => {
      const path = file(text)
      throws(() => loadScenario(path), { name: 'ScenarioError', message: message.replace('load.yaml', path) })
    })
  }

  test('all of it at once', () => {
    const path = file('requests:\n  - { weight: x }\n  - { url: 3 }')
    throws(() => loadScenario(path), {
      message: `${path}:2:15: requests[0].weight: found "x", expected a number above 0\n${path}:3:12: requests[1].url: found 3, expected a text`,
    })
  })

  test('files that are not there', () => {
    throws(() => loadScenario('/nowhere/load.yaml'), { message: '/nowhere/load.yaml: does not exist' })
    throws(() => loadScenario(folder), { message: `${folder}: is a folder` })
    const path = file('requests: [{ bodyFile: none.bin }]')
    throws(() => loadScenario(path), { message: `${path}:1:24: requests[0].bodyFile: ${join(folder, 'none.bin')} does not exist` })
  })

  test('what only the plan can see, too', () => {
    const path = file('requests:\n  - url: http://a.test/\n    method: G T\n')
    const scenario = loadScenario(path)
    throws(() => makePlan({ requests: scenario.requests }, (option) => scenario.placeOf(option)), {
      message: `${path}:3:13: requests[0].method: expected a method such as GET or POST, found "G T"`,
    })
  })
})
