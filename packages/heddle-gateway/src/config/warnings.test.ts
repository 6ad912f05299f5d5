import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { makeCertificate } from 'heddle/testing'
import { ConfigError, formatProblem, parseConfig } from './index.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-warnings-'))
after(() => rmSync(folder, { recursive: true }))

function warningsAbout(text: string): string[] {
  const lines: string[] = []
  parseConfig(text, { file: 'g.yaml', folder, onWarning: (problem) => lines.push(formatProblem(problem)) })
  return lines
}

const listeners = 'listeners: [{ name: web, port: 8080 }]\n'
const clusters = 'clusters: [{ name: app, endpoints: [a:1] }]\n'

function routes(...matches: readonly string[]): string {
  return `${listeners}${clusters}routes:\n${matches.map((match, i) => `  - { name: r${i}, cluster: app, match: { ${match} } }\n`).join('')}`
}

describe('a route behind one that takes all it matches', () => {
  const hidden: readonly [string, string][] = [
    ['', ''],
    ['', 'hosts: [a.example], pathPrefix: /a, methods: [GET], headers: [{ name: x }]'],
    ['pathPrefix: /a', 'pathPrefix: /a'],
    ['pathPrefix: /a', 'pathPrefix: /a/'],
    ['pathPrefix: /a/', 'pathPrefix: /a'],
    ['pathPrefix: /a', 'pathPrefix: /a/b'],
    ['hosts: [b.example, a.example]', 'hosts: [a.example]'],
    ['hosts: ["*.example"]', 'hosts: [a.example, "*.b.example", "*.example"]'],
    ['methods: [GET, POST]', 'methods: [POST]'],
    ['headers: [{ name: x }]', 'headers: [{ name: y }, { name: x, value: "1" }]'],
    ['headers: [{ name: x, value: "1" }]', 'headers: [{ name: x, value: "1" }]'],
  ]
  for (const [earlier, later] of hidden) {
    test(`{ ${later} } behind { ${earlier} }`, () => {
      assert.deepEqual(warningsAbout(routes(earlier, later)), [
        'g.yaml:5:13: warning: routes[1].name: is never reached: all that it matches is taken by routes[0], "r0", before it',
      ])
    })
  }

  const seen: readonly [string, string][] = [
    ['hosts: [a.example]', ''],
    ['hosts: [a.example]', 'hosts: [a.example, b.example]'],
    ['hosts: ["*.example"]', 'hosts: [example]'],
    ['hosts: ["*.a.example"]', 'hosts: ["*.example"]'],
    ['hosts: [a.example]', 'hosts: ["*.example"]'],
    ['pathPrefix: /a', ''],
    ['pathPrefix: /a', 'pathPrefix: /ab'],
    ['methods: [GET]', ''],
    ['methods: [GET]', 'methods: [GET, POST]'],
    ['headers: [{ name: x }]', ''],
    ['headers: [{ name: x, value: "1" }]', 'headers: [{ name: x }]'],
    ['headers: [{ name: x, value: "1" }]', 'headers: [{ name: x, value: "2" }]'],
  ]
  for (const [earlier, later] of seen) {
    test(`but not { ${later} } behind { ${earlier} }`, () => assert.deepEqual(warningsAbout(routes(earlier, later)), []))
  }
})

test('a cluster no route leads to', () => {
  const text = `${listeners}routes: [{ name: all, cluster: b }]\nclusters:\n  - { name: a, endpoints: [a:1] }\n  - { name: b, endpoints: [b:1] }\n`
  assert.deepEqual(warningsAbout(text), ['g.yaml:4:13: warning: clusters[0].name: no route leads to the cluster "a"'])
})

test('nothing is told beside errors, and nobody has to listen', () => {
  const text = `${routes('', '')}drainTimeout: 1\n`
  const told: unknown[] = []
  assert.throws(() => parseConfig(text, { onWarning: (problem) => told.push(problem) }), ConfigError)
  assert.deepEqual(told, [])
  assert.equal(parseConfig(routes('', '')).routes.length, 2)
})

test("a directive of YAML that is not ours to follow, in the file's order", () => {
  assert.deepEqual(warningsAbout(`%YAML 1.3\n---\n${routes('', '')}`), [
    'g.yaml:1:7: warning: Unsupported YAML version 1.3',
    'g.yaml:7:13: warning: routes[1].name: is never reached: all that it matches is taken by routes[0], "r0", before it',
  ])
})

describe('certificates', () => {
  const until: Record<string, string> = {}
  function write(name: string, ...made: readonly { readonly cert: string; readonly key: string }[]): void {
    writeFileSync(join(folder, `${name}.crt`), made.map(({ cert }) => cert).join(''))
    writeFileSync(join(folder, `${name}.key`), made[0]?.key ?? '')
  }
  function expired(days: number): { readonly cert: string; readonly key: string } {
    const made = makeCertificate({ names: [`old${-days}.example`], days })
    until[days] = new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
    return made
  }
  const good = (name: string, ...more: string[]): { readonly cert: string; readonly key: string } =>
    makeCertificate({ names: [name, ...more] })
  const listening = (entries: string, more = ''): string =>
    `listeners: [{ name: web, port: 1, tls: { certificates: [${entries}]${more} } }]\nroutes: [{ name: all, cluster: app }]\n${clusters}`
  const calling = (tls: string): string =>
    `${listeners}routes: [{ name: all, cluster: app }]\nclusters: [{ name: app, endpoints: [a:1], tls: { ${tls} } }]\n`

  test('that have expired, the issuers in their file included', () => {
    write('old', expired(-2))
    write('chain', good('leaf.example'), expired(-3))
    write('good', good('good.example'))
    assert.deepEqual(warningsAbout(listening('{ cert: good.crt, key: good.key }')), [])
    const [leaf, issuer] = warningsAbout(listening('{ cert: old.crt, key: old.key }, { cert: chain.crt, key: chain.key }'))
    const at = (place: string, which: string, name: string, days: number): RegExp =>
      new RegExp(`^g\\.yaml:${place}: ${which} in ${folder}/${name}\\.crt expired on ${until[days]} \\d\\d:\\d\\d UTC$`)
    assert.match(leaf ?? '', at('1:65: warning: listeners\\[0\\]\\.tls\\.certificates\\[0\\]\\.cert', 'the certificate', 'old', -2))
    assert.match(issuer ?? '', at('1:98: warning: listeners\\[0\\]\\.tls\\.certificates\\[1\\]\\.cert', 'certificate 2 of 2', 'chain', -3))
    const upstream = warningsAbout(calling('cert: old.crt, key: old.key'))
    assert.equal(upstream.length, 1)
    assert.match(upstream[0] ?? '', at('3:56: warning: clusters\\[0\\]\\.tls\\.cert', 'the certificate', 'old', -2))
  })

  test('of authorities, when none of the file is valid', () => {
    write('mixed', good('ca.example'), expired(-2))
    write('gone', expired(-2), expired(-3))
    assert.deepEqual(warningsAbout(calling('ca: mixed.crt')), [])
    assert.match(
      warningsAbout(calling('ca: gone.crt')).join('\n'),
      /^g\.yaml:3:54: warning: clusters\[0\]\.tls\.ca: certificate 1 of 2 in .+ expired on .+$/,
    )
    write('good', good('good.example'))
    assert.match(
      warningsAbout(listening('{ cert: good.crt, key: good.key }', ', clientCa: gone.crt')).join('\n'),
      /^g\.yaml:1:103: warning: listeners\[0\]\.tls\.clientCa: certificate 1 of 2 in .+ expired on .+$/,
    )
  })

  test('that no name leads to', () => {
    write('first', good('a.example', 'b.example'))
    write('other', good('b.example'))
    write('nameless', makeCertificate({ names: [], ipAddresses: ['192.0.2.1'] }))
    assert.deepEqual(
      warningsAbout(
        listening('{ cert: first.crt, key: first.key }, { cert: other.crt, key: other.key }, { cert: nameless.crt, key: nameless.key }'),
      ),
      [
        'g.yaml:1:102: warning: listeners[0].tls.certificates[1].cert: is never shown: certificates before it have its names, b.example',
        'g.yaml:1:139: warning: listeners[0].tls.certificates[2].cert: is never shown: it has no DNS name; give it "names"',
      ],
    )
    assert.deepEqual(
      warningsAbout(
        listening(
          '{ cert: nameless.crt, key: nameless.key }, { cert: first.crt, key: first.key }, { cert: other.crt, key: other.key, names: [c.example] }',
        ),
      ),
      [],
    )
  })
})
