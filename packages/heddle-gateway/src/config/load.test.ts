import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeCertificate } from 'heddle/testing'
import { ConfigError, loadConfig, parseConfig } from './index.ts'

const listeners = 'listeners: [{ name: web, port: 8080 }]\n'
const routes = 'routes: [{ name: all, cluster: app }]\n'
const clusters = 'clusters: [{ name: app, endpoints: [127.0.0.1:3000] }]\n'
const smallest = listeners + routes + clusters

function problemsOf(text: string, folder?: string): string[] {
  try {
    parseConfig(text, { file: 'g.yaml', ...(folder === undefined ? {} : { folder }) })
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message.split('\n')
  }
  return []
}

describe('a configuration', () => {
  test('gets every default', () => {
    assert.deepEqual(parseConfig(smallest), {
      workers: 1,
      admin: undefined,
      accessLog: undefined,
      drainTimeout: 30_000,
      tunnelGrace: 20_000,
      listeners: [
        {
          name: 'web',
          host: '0.0.0.0',
          port: 8080,
          tls: undefined,
          trust: [],
          via: 'heddle',
          forwarded: 'x-forwarded',
          upgrades: ['websocket'],
          protocols: ['h1', 'h2'],
          altSvc: true,
          http2: {
            streamWindow: 1_048_576,
            connectionWindow: 4_194_304,
            maxWindow: 16_777_216,
            pingInterval: 15_000,
            pingTimeout: 10_000,
            maxConcurrentStreams: 100,
          },
          http3: { streamWindow: 1_048_576, connectionWindow: 4_194_304, maxWindow: 16_777_216, maxConcurrentStreams: 100 },
          limits: {
            maxConnections: 10_000,
            maxContentLength: Infinity,
            headTimeout: 10_000,
            bodyTimeout: 30_000,
            idleTimeout: 60_000,
            sendTimeout: 60_000,
          },
        },
      ],
      routes: [
        {
          name: 'all',
          match: { hosts: [], pathPrefix: '/', grpcService: undefined, methods: [], headers: [] },
          cluster: 'app',
          timeout: Infinity,
          headTimeout: undefined,
          bodyTimeout: undefined,
          grpcDeadline: false,
          maxConcurrentStreams: Infinity,
          streamWindow: undefined,
          extendedConnect: false,
          tunnelIdleTimeout: 3_600_000,
          retry: { attempts: 2 },
          authority: undefined,
        },
      ],
      clusters: [
        {
          name: 'app',
          endpoints: [{ host: '127.0.0.1', port: 3000 }],
          tls: undefined,
          protocol: 'auto',
          http2: {
            streamWindow: 131_072,
            connectionWindow: 4_194_304,
            maxWindow: 16_777_216,
            pingInterval: 15_000,
            pingTimeout: 10_000,
            idleTimeout: 60_000,
            maxFailuresInRow: 8,
          },
          http3: { streamWindow: 131_072, idleTimeout: 60_000, maxFailuresInRow: 8 },
          connectTimeout: 5_000,
          headTimeout: 60_000,
          bodyTimeout: 60_000,
          sendTimeout: 60_000,
          idleTimeout: 4_000,
          maxConnectionsPerEndpoint: 256,
          maxTunnelsPerEndpoint: 10_000,
          maxWaiting: 1_024,
          resolveInterval: 30_000,
          ejection: { consecutiveFailures: 5, baseTime: 1_000, maxTime: 30_000, maxShare: 0.5 },
        },
      ],
    })
  })

  test('may say everything', () => {
    const config = parseConfig(`
workers: auto
drainTimeout: 1m
tunnelGrace: 0s
admin: { port: 9990, hosts: [Admin.internal.] }
accessLog: { path: stdout }
listeners:
  - name: web
    host: "::1"
    port: 8080
    trust: [10.0.0.0/8, "::1"]
    via: edge-1
    forwarded: both
    upgrades: [WebSocket, connect-udp]
    protocols: [h2]
    http2: { maxConcurrentStreams: 1000, streamWindow: 64KiB, connectionWindow: 1MiB, maxWindow: 1GiB, pingInterval: none, pingTimeout: 2s }
    limits: { maxConnections: 5, maxContentLength: 10MB, headTimeout: 5s, bodyTimeout: none, idleTimeout: 1m, sendTimeout: 250ms }
routes:
  - name: api
    match:
      hosts: [API.example.org, "*.Example.com."]
      pathPrefix: /api
      methods: [GET, PROPFIND]
      headers: [{ name: X-Beta }, { name: x-tenant, value: a b }]
    cluster: app
    timeout: 30s
    headTimeout: 5s
    bodyTimeout: none
    maxConcurrentStreams: 50
    streamWindow: 256KiB
    extendedConnect: true
    tunnelIdleTimeout: none
    retry: { attempts: 0 }
    authority: internal:8443
  - name: rpc
    match: { grpcService: helloworld.v1.Greeter_2 }
    cluster: app
    grpcDeadline: true
    maxConcurrentStreams: none
clusters:
  - name: app
    endpoints: [app.internal:3000, "[::1]:3001", { host: 10.0.0.1, port: 80 }]
    tls: { serverName: app.internal }
    protocol: h2
    sendTimeout: none
    maxTunnelsPerEndpoint: 5
    http2: { idleTimeout: 5m, maxFailuresInRow: none }
    ejection: { consecutiveFailures: 0, maxShare: 1 }
`)
    assert.ok(config.workers >= 1)
    assert.deepEqual([config.drainTimeout, config.tunnelGrace], [60_000, 0])
    assert.deepEqual(config.admin, { host: '127.0.0.1', port: 9990, hosts: ['admin.internal'] })
    assert.deepEqual(config.accessLog, { path: 'stdout' })
    assert.deepEqual(config.listeners[0]?.upgrades, ['websocket', 'connect-udp'])
    assert.deepEqual(config.listeners[0]?.limits, {
      maxConnections: 5,
      maxContentLength: 10_000_000,
      headTimeout: 5_000,
      bodyTimeout: Infinity,
      idleTimeout: 60_000,
      sendTimeout: 250,
    })
    assert.deepEqual(config.listeners[0]?.protocols, ['h2'])
    assert.deepEqual(config.listeners[0]?.http2, {
      maxConcurrentStreams: 1_000,
      streamWindow: 65_536,
      connectionWindow: 1_048_576,
      maxWindow: 1_073_741_824,
      pingInterval: Infinity,
      pingTimeout: 2_000,
    })
    assert.deepEqual(config.routes[0]?.match, {
      hosts: ['api.example.org', '*.example.com'],
      pathPrefix: '/api',
      grpcService: undefined,
      methods: ['GET', 'PROPFIND'],
      headers: [
        { name: 'x-beta', value: undefined },
        { name: 'x-tenant', value: 'a b' },
      ],
    })
    const { headTimeout, bodyTimeout, maxConcurrentStreams, streamWindow, extendedConnect } = config.routes[0] ?? {}
    assert.deepEqual([headTimeout, bodyTimeout, maxConcurrentStreams, streamWindow, extendedConnect], [5_000, Infinity, 50, 262_144, true])
    assert.equal(config.routes[1]?.match.grpcService, 'helloworld.v1.Greeter_2')
    assert.equal(config.routes[1]?.grpcDeadline, true)
    assert.equal(config.routes[1]?.maxConcurrentStreams, Infinity)
    assert.equal(config.clusters[0]?.protocol, 'h2')
    assert.equal(config.routes[0]?.tunnelIdleTimeout, Infinity)
    assert.equal(config.clusters[0]?.http2.idleTimeout, 300_000)
    assert.equal(config.clusters[0]?.http2.maxFailuresInRow, Infinity)
    assert.deepEqual([config.clusters[0]?.sendTimeout, config.clusters[0]?.maxTunnelsPerEndpoint], [Infinity, 5])
    assert.deepEqual(config.clusters[0]?.endpoints, [
      { host: 'app.internal', port: 3000 },
      { host: '::1', port: 3001 },
      { host: '10.0.0.1', port: 80 },
    ])
    assert.deepEqual(config.clusters[0]?.tls, { ca: undefined, cert: undefined, key: undefined, serverName: 'app.internal' })
  })

  test('gives tunnels two thirds of the time there is, unless it says otherwise', () => {
    assert.equal(parseConfig(`${smallest}drainTimeout: 3s\n`).tunnelGrace, 2_000)
    assert.equal(parseConfig(`${smallest}drainTimeout: 3s\ntunnelGrace: 3s\n`).tunnelGrace, 3_000)
  })

  test('may use anchors', () => {
    const config = parseConfig(`${listeners}${routes}clusters:
  - { name: app, endpoints: [a:1], ejection: &careful { consecutiveFailures: 1 } }
  - { name: other, endpoints: [b:1], ejection: *careful }
`)
    assert.equal(config.clusters[1]?.ejection.consecutiveFailures, 1)
  })

  test('may keep anchors under keys that begin with x-, and merge them', () => {
    const config = parseConfig(`
x-note: written by hand
x-cluster: &cluster { connectTimeout: 1s, idleTimeout: 2s, ejection: &careful { consecutiveFailures: 1 } }
${listeners}${routes}clusters:
  - { <<: *cluster, name: app, endpoints: [a:1], idleTimeout: 3s }
  - <<: [{ connectTimeout: 9s }, *cluster]
    name: other
    endpoints: [b:1]
    ejection: { <<: *careful, maxShare: 1 }
`)
    const [app, other] = config.clusters
    assert.deepEqual([app?.connectTimeout, app?.idleTimeout, app?.ejection.consecutiveFailures], [1_000, 3_000, 1])
    assert.deepEqual([other?.connectTimeout, other?.idleTimeout], [9_000, 2_000], 'of a list, the first wins')
    assert.deepEqual([other?.ejection.consecutiveFailures, other?.ejection.maxShare], [1, 1])
  })

  test('may use one anchor as often as a generated file does', () => {
    const more = Array.from({ length: 1_000 }, (_, i) => `  - { name: r${i}, match: { pathPrefix: /${i} }, cluster: app, retry: *once }\n`)
    const config = parseConfig(`x-retry: &once { attempts: 1 }\n${listeners}${clusters}routes:\n${more.join('')}`)
    assert.equal(config.routes[999]?.retry.attempts, 1)
  })
})

describe('a wrong configuration is told with file, line and column', () => {
  const cases: readonly [string, string, readonly string[]][] = [
    ['nothing', '', ['g.yaml: is empty; expected listeners, routes and clusters']],
    ['only a comment', '# later\n', ['g.yaml: is empty; expected listeners, routes and clusters']],
    ['a list', '- a\n', ['g.yaml:1:1: found a list, expected a mapping']],
    [
      'bad YAML',
      'listeners: [\n',
      ['g.yaml:2:1: not valid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]'],
    ],
    [
      // The parser has something to say of each word behind it.
      'one bracket too many',
      `listeners: [{ name: web, port: 80 }}]\n${routes}${clusters}`,
      ['g.yaml:1:36: not valid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]'],
    ],
    ['a bracket of its own', `}\n${smallest}`, ['g.yaml:1:1: not valid YAML: unexpected "}"']],
    [
      'one bracket too few',
      `${smallest}a: [{ b: c ]\nd: e\n`,
      ['g.yaml:4:12: not valid YAML: Flow map in block collection must be sufficiently indented and end with a }'],
    ],
    [
      'what is wrong before that, and not what is behind it',
      `${smallest}workers: 1\nworkers: 2\ndrainTimeout: !duration 5s\n\tadmin: *nobody\nadmin: { port: 1 }}\nworkers: 3\n`,
      [
        'g.yaml:5:1: not valid YAML: Map keys must be unique',
        'g.yaml:6:15: the tag !duration means nothing here; leave it out',
        'g.yaml:7:1: not valid YAML: Tabs are not allowed as indentation',
      ],
    ],
    ['a key twice', `${smallest}workers: 1\nworkers: 2\n`, ['g.yaml:5:1: not valid YAML: Map keys must be unique']],
    [
      'an alias bomb',
      `a: &a [x]\nb: &b [${'*a,'.repeat(200)}]\nc: [${'*b,'.repeat(200)}]\n`,
      ['g.yaml: has more than 10000 aliases of one anchor, or aliases of aliases that multiply to so many'],
    ],
    [
      'no sections',
      'workers: 1\n',
      [
        'g.yaml:1:1: listeners: missing; expected a list',
        'g.yaml:1:1: routes: missing; expected a list',
        'g.yaml:1:1: clusters: missing; expected a list',
      ],
    ],
    ['an unknown key', `${smallest}listner: 1\n`, ['g.yaml:4:1: listner: unknown key; did you mean "listeners"?']],
    [
      'an unknown key like no other',
      `${smallest}plugins: 1\n`,
      ['g.yaml:4:1: plugins: unknown key; known here: workers, admin, accessLog, listeners, routes, clusters, drainTimeout, tunnelGrace'],
    ],
    [
      'a deep unknown key',
      `${listeners}${clusters}routes:\n  - name: all\n    cluster: app\n    match: { pathprefix: /a }\n`,
      ['g.yaml:6:14: routes[0].match.pathprefix: unknown key; did you mean "pathPrefix"?'],
    ],
    [
      'text instead of a port',
      `listeners:\n  - name: web\n    port: "80"\n${routes}${clusters}`,
      ['g.yaml:3:11: listeners[0].port: found "80", expected a whole number from 0 to 65535'],
    ],
    [
      'a port out of range',
      `listeners:\n  - name: web\n    port: 65536\n${routes}${clusters}`,
      ['g.yaml:3:11: listeners[0].port: found 65536, expected a whole number from 0 to 65535'],
    ],
    [
      'no port',
      `listeners:\n  - name: web\n${routes}${clusters}`,
      ['g.yaml:2:5: listeners[0].port: missing; expected a whole number from 0 to 65535'],
    ],
    ['no listener', `listeners: []\n${routes}${clusters}`, ['g.yaml:1:12: listeners: found an empty list, expected at least one listener']],
    ['a section without content', `listeners:\n${routes}${clusters}`, ['g.yaml:1:11: listeners: found nothing, expected a list']],
    [
      'a duration without unit',
      `${smallest}drainTimeout: 30\n`,
      ['g.yaml:4:15: drainTimeout: found 30, expected a duration such as 250ms, 10s, 1m or 2h'],
    ],
    [
      'tunnels that live on when all is over',
      `${smallest}tunnelGrace: 31s\n`,
      ['g.yaml:4:14: tunnelGrace: found "31s", expected a duration of at most drainTimeout, 30s'],
    ],
    [
      'an upgrade that would go past all rules',
      `listeners:\n  - name: web\n    port: 80\n    upgrades: [h2c]\n${routes}${clusters}`,
      ['g.yaml:4:16: listeners[0].upgrades[0]: found "h2c", expected the name of an upgrade protocol such as websocket, and not h2c'],
    ],
    ['no workers', `${smallest}workers: 0\n`, ['g.yaml:4:10: workers: found 0, expected a whole number from 1 to 256']],
    [
      'workers in words',
      `${smallest}workers: many\n`,
      ['g.yaml:4:10: workers: found "many", expected a whole number from 1 to 256, or auto'],
    ],
    [
      'two things on one port',
      `${smallest}admin: { port: 8080 }\n`,
      ['g.yaml:4:16: admin.port: 127.0.0.1:8080 is already taken by listeners[0] (0.0.0.0:8080)'],
    ],
    [
      'a name twice',
      `${listeners}${clusters}routes:\n  - { name: all, cluster: app }\n  - { name: all, cluster: app }\n`,
      ['g.yaml:5:13: routes[1].name: "all" is already the name of routes[0]'],
    ],
    [
      'a cluster that does not exist',
      `${listeners}${clusters}routes:\n  - { name: all, cluster: apps }\n  - { name: img, cluster: images }\n`,
      [
        'g.yaml:4:27: routes[0].cluster: no cluster has the name "apps"; did you mean "app"?',
        'g.yaml:5:27: routes[1].cluster: no cluster has the name "images"; the clusters are app',
      ],
    ],
    [
      'bad conditions',
      `${listeners}${clusters}routes:
  - name: all
    cluster: app
    match:
      hosts: [example.org:80, "*", "a*.org"]
      pathPrefix: /a/../b
      methods: [get]
      headers: [{ name: Host }, { name: "a b" }, { value: x }]
`,
      [
        'g.yaml:7:15: routes[0].match.hosts[0]: found "example.org:80", expected a host name such as example.org or *.example.org, without port',
        'g.yaml:7:31: routes[0].match.hosts[1]: found "*", expected a host name such as example.org or *.example.org, without port',
        'g.yaml:7:36: routes[0].match.hosts[2]: found "a*.org", expected a host name such as example.org or *.example.org, without port',
        'g.yaml:8:19: routes[0].match.pathPrefix: found "/a/../b", expected a path such as /api, in normal form and without a query',
        'g.yaml:9:17: routes[0].match.methods[0]: found "get", expected a method such as GET, in upper case',
        'g.yaml:10:25: routes[0].match.headers[0].name: found "Host", expected the name of an end-to-end field; for Host there is "hosts"',
        'g.yaml:10:41: routes[0].match.headers[1].name: found "a b", expected the name of an end-to-end field; for Host there is "hosts"',
        'g.yaml:10:50: routes[0].match.headers[2].name: missing; expected the name of an end-to-end field; for Host there is "hosts"',
      ],
    ],
    [
      'bad endpoints',
      `${listeners}${routes}clusters:\n  - name: app\n    endpoints: [example.org, "a:0", "[1.2.3.4]:80", { host: a, port: 1, weight: 2 }, 7, { host: a/b, port: 1 }]\n`,
      [
        'g.yaml:5:17: clusters[0].endpoints[0]: found "example.org", expected host:port, or a mapping of host and port',
        'g.yaml:5:30: clusters[0].endpoints[1]: found "a:0", expected a port from 1 to 65535 after the host',
        'g.yaml:5:37: clusters[0].endpoints[2]: found "[1.2.3.4]:80", expected a host name, or an IPv6 address in the brackets, before the port',
        'g.yaml:5:73: clusters[0].endpoints[3].weight: unknown key; known here: host, port',
        'g.yaml:5:86: clusters[0].endpoints[4]: found 7, expected host:port, or a mapping of host and port',
        'g.yaml:5:97: clusters[0].endpoints[5].host: found "a/b", expected a host name or IP address',
      ],
    ],
    [
      'endpoints in which only one thing is wrong',
      `${listeners}${routes}clusters:\n  - name: app\n    endpoints: ["127.0.0.1:0", "a:70000", "a:http", "a:", ":80", "a_/:80", "::1", "http://a:80"]\n`,
      [
        'g.yaml:5:17: clusters[0].endpoints[0]: found "127.0.0.1:0", expected a port from 1 to 65535 after the host',
        'g.yaml:5:32: clusters[0].endpoints[1]: found "a:70000", expected a port from 1 to 65535 after the host',
        'g.yaml:5:43: clusters[0].endpoints[2]: found "a:http", expected a port from 1 to 65535 after the host',
        'g.yaml:5:53: clusters[0].endpoints[3]: found "a:", expected a port from 1 to 65535 after the host',
        'g.yaml:5:59: clusters[0].endpoints[4]: found ":80", expected a host name or an IPv4 address before the port',
        'g.yaml:5:66: clusters[0].endpoints[5]: found "a_/:80", expected a host name or an IPv4 address before the port',
        'g.yaml:5:76: clusters[0].endpoints[6]: found "::1", expected an IPv6 address in brackets and a port, such as [::1]:8080',
        'g.yaml:5:83: clusters[0].endpoints[7]: found "http://a:80", expected host:port without a scheme; for TLS the cluster has the key tls',
      ],
    ],
    [
      'an endpoint twice',
      `${listeners}${routes}clusters:\n  - name: app\n    endpoints: [a:1, b:1, A.:1, { host: b, port: 1 }, a:2]\n`,
      [
        'g.yaml:5:27: clusters[0].endpoints[2]: found "A.:1", expected another endpoint than endpoints[0]',
        'g.yaml:5:33: clusters[0].endpoints[3]: found a mapping, expected another endpoint than endpoints[1]',
      ],
    ],
    [
      'ejections that cannot last their base time',
      `${listeners}${routes}clusters:
  - { name: app, endpoints: [a:1], ejection: { baseTime: 1m } }
  - { name: b, endpoints: [a:1], ejection: { maxTime: 500ms } }
  - { name: c, endpoints: [a:1], ejection: { baseTime: 2s, maxTime: 1s } }
  - { name: d, endpoints: [a:1], ejection: { baseTime: 2s, maxTime: 2s } }
`,
      [
        'g.yaml:4:58: clusters[0].ejection.baseTime: found "1m", expected a duration of at most maxTime, 30s',
        'g.yaml:5:55: clusters[1].ejection.maxTime: found "500ms", expected a duration of at least baseTime, 1s',
        'g.yaml:6:69: clusters[2].ejection.maxTime: found "1s", expected a duration of at least baseTime, 2s',
      ],
    ],
    ['two documents', `${smallest}---\n${smallest}`, ['g.yaml:4:1: a second YAML document begins here, but a file is one configuration']],
    [
      'tags',
      `${smallest}drainTimeout: !duration 30s\nadmin: !env {}\nworkers: !!int x\naccessLog: !e!x {}\n`,
      [
        'g.yaml:4:15: the tag !duration means nothing here; leave it out',
        'g.yaml:5:8: the tag !env means nothing here; leave it out',
        'g.yaml:6:10: the tag !!int means nothing here; leave it out',
        'g.yaml:7:12: the tag !e!x means nothing here; leave it out',
      ],
    ],
    [
      'aliases without an anchor, before it and within it',
      `${smallest}workers: *w\nadmin: &admin { port: *later, more: [*admin] }\ndrainTimeout: &later 1s\n`,
      [
        'g.yaml:4:10: there is no anchor &w before this alias',
        'g.yaml:5:23: there is no anchor &later before this alias',
        'g.yaml:5:38: this alias is part of what its anchor &admin stands for',
      ],
    ],
    [
      'merges of what is no mapping',
      `x-port: &port 80\nadmin: { <<: *port }\n${smallest}drainTimeout: { <<: [{}, 1] }\n`,
      ['g.yaml:2:10: << takes a mapping or a list of mappings', 'g.yaml:6:17: << takes a mapping or a list of mappings'],
    ],
    [
      'a mistake in what was merged, told where it is written',
      `x-tls: &slow { idleTimeout: 1 }\n${listeners}${routes}clusters:\n  - { <<: [{ name: app }, *slow], endpoints: [a:1] }\n`,
      ['g.yaml:1:29: clusters[0].idleTimeout: found 1, expected a duration such as 250ms, 10s, 1m or 2h'],
    ],
    [
      'a key at the top for its anchor, with a name that does not say so',
      `defaults: &careful { consecutiveFailures: 1 }\n${smallest}`,
      ['g.yaml:1:1: defaults: unknown key; one that is there for its anchor has a name that begins with "x-", such as "x-defaults"'],
    ],
    [
      'a key that begins with x- anywhere but at the top',
      `${smallest}admin: { port: 1, x-note: a }\n`,
      ['g.yaml:4:19: admin.x-note: unknown key; known here: host, port, hosts'],
    ],
    [
      'bad listener words',
      `listeners:\n  - name: a b\n    port: 1\n    trust: [10.0.0.0/33, everyone]\n    via: a b\n    forwarded: yes\n${routes}${clusters}`,
      [
        'g.yaml:2:11: listeners[0].name: found "a b", expected a name of letters, digits, ".", "_", "-" or ":", at most 100',
        'g.yaml:4:13: listeners[0].trust[0]: found "10.0.0.0/33", expected an IP address or CIDR block such as 10.0.0.0/8',
        'g.yaml:4:26: listeners[0].trust[1]: found "everyone", expected an IP address or CIDR block such as 10.0.0.0/8',
        'g.yaml:5:10: listeners[0].via: found "a b", expected a pseudonym for Via, one token',
        'g.yaml:6:16: listeners[0].forwarded: found "yes", expected x-forwarded, forwarded, both or none',
      ],
    ],
    [
      'HTTP/2 that cannot be',
      `listeners: [{ name: web, port: 1, protocols: [h4], http2: { streamWindow: 100B, connectionWindow: 1KiB } }]
routes: [{ name: rpc, cluster: app, match: { grpcService: /a.B, pathPrefix: /a.B }, grpcDeadline: 5s, maxConcurrentStreams: 0 }]
clusters: [{ name: app, endpoints: [a:1], protocol: h2 }, { name: b, endpoints: [b:1], tls: {}, protocol: h2c }, { name: c, endpoints: [c:1], protocol: http }]
`,
      [
        'g.yaml:1:47: listeners[0].protocols[0]: found "h4", expected h1, h2 or h3',
        'g.yaml:1:75: listeners[0].http2.streamWindow: found "100B", expected a size from 1KiB to 1GiB',
        'g.yaml:1:99: listeners[0].http2.connectionWindow: found "1KiB", expected a size from 64KiB to 1GiB',
        'g.yaml:2:59: routes[0].match.grpcService: found "/a.B", expected the full name of a gRPC service such as package.Service',
        'g.yaml:2:77: routes[0].match.pathPrefix: excluded by grpcService, which is a path as well',
        'g.yaml:2:99: routes[0].grpcDeadline: found "5s", expected true or false',
        'g.yaml:2:125: routes[0].maxConcurrentStreams: found 0, expected a whole number from 1 to 1000000, or none',
        'g.yaml:3:53: clusters[0].protocol: h2 needs tls ({} for the usual authorities); HTTP/2 on plain text is h2c',
        'g.yaml:3:107: clusters[1].protocol: h2c is on plain text; with tls it is h2',
        'g.yaml:3:153: clusters[2].protocol: found "http", expected auto, h1, h2, h2c or h3',
      ],
    ],
    [
      'HTTP/3 that cannot be',
      `listeners:
  - { name: a, port: 1, protocols: [h2, h3], altSvc: maybe, http3: { maxConcurrentStreams: 0, pingInterval: 1s } }
  - { name: b, port: 2, altSvc: true }
  - { name: c, port: 3, altSvc: 70000 }
  - { name: d, port: 4, altSvc: false }
${routes}clusters: [{ name: app, endpoints: [a:1], protocol: h3, http3: { streamWindow: 1B, connectionWindow: 1MiB } }]
`,
      [
        'g.yaml:2:41: listeners[0].protocols[1]: h3 needs tls: there is no HTTP/3 on plain text',
        'g.yaml:2:54: listeners[0].altSvc: found "maybe", expected true, false, or the port from 1 to 65535 at which clients find HTTP/3',
        'g.yaml:2:92: listeners[0].http3.maxConcurrentStreams: found 0, expected a whole number from 1 to 1000000',
        'g.yaml:2:95: listeners[0].http3.pingInterval: unknown key; known here: streamWindow, connectionWindow, maxWindow, maxConcurrentStreams',
        'g.yaml:3:33: listeners[1].altSvc: tells of HTTP/3, and h3 is not among the protocols',
        'g.yaml:4:33: listeners[2].altSvc: found 70000, expected true, false, or the port from 1 to 65535 at which clients find HTTP/3',
        'g.yaml:4:33: listeners[2].altSvc: tells of HTTP/3, and h3 is not among the protocols',
        'g.yaml:7:53: clusters[0].protocol: h3 needs tls ({} for the usual authorities)',
        'g.yaml:7:80: clusters[0].http3.streamWindow: found "1B", expected a size from 1KiB to 1GiB',
        'g.yaml:7:84: clusters[0].http3.connectionWindow: unknown key; known here: streamWindow, idleTimeout, maxFailuresInRow',
      ],
    ],
    [
      'one port twice, by TCP or by UDP',
      `listeners:
  - { name: a, port: 1, tls: {}, protocols: [h3] }
  - { name: b, port: 1 }
  - { name: c, port: 1, tls: {}, protocols: [h3, h1] }
  - { name: d, port: 2, tls: {}, protocols: [h2, h3] }
  - { name: e, port: 2, tls: {}, protocols: [h3] }
admin: { port: 2 }
${routes}${clusters}`,
      [
        'g.yaml:2:30: listeners[0].tls.certificates: missing; expected a list',
        'g.yaml:4:22: listeners[2].port: 0.0.0.0:1 is already taken by listeners[0] (0.0.0.0:1)',
        'g.yaml:4:30: listeners[2].tls.certificates: missing; expected a list',
        'g.yaml:5:30: listeners[3].tls.certificates: missing; expected a list',
        'g.yaml:6:22: listeners[4].port: 0.0.0.0:2 is already taken by listeners[3] (0.0.0.0:2)',
        'g.yaml:6:30: listeners[4].tls.certificates: missing; expected a list',
        'g.yaml:7:16: admin.port: 127.0.0.1:2 is already taken by listeners[3] (0.0.0.0:2)',
      ],
    ],
    [
      'an empty list of protocols',
      `listeners: [{ name: web, port: 1, protocols: [] }]\n${routes}${clusters}`,
      ['g.yaml:1:46: listeners[0].protocols: found an empty list, expected at least one of h1, h2 and h3'],
    ],
    [
      'a certificate without its key',
      `${listeners}${routes}clusters:\n  - name: app\n    endpoints: [a:1]\n    tls: { key: missing.pem }\n`,
      [
        'g.yaml:6:17: clusters[0].tls.key: found "missing.pem", expected a PEM file of a private key, but /nowhere/missing.pem does not exist',
      ],
    ],
    [
      'a log in a folder that does not exist',
      `${smallest}accessLog: { path: logs/a.log }\n`,
      [
        'g.yaml:4:20: accessLog.path: found "logs/a.log", expected the path of a file, or stdout, but the folder /nowhere/logs does not exist',
      ],
    ],
  ]
  for (const [what, text, expected] of cases) {
    test(what, () => assert.deepEqual(problemsOf(text, '/nowhere'), expected))
  }
})

describe('files', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'heddle-config-'))
  })
  after(() => rmSync(folder, { recursive: true }))

  test('the file itself may be missing', () => {
    assert.throws(() => loadConfig(join(folder, 'none.yaml')), {
      name: 'ConfigError',
      message: `${join(folder, 'none.yaml')}: does not exist`,
    })
  })

  test('names in it start at its folder', () => {
    const path = join(folder, 'gateway.yaml')
    writeFileSync(path, `${smallest}accessLog: { path: access.log }\n`)
    assert.equal(loadConfig(path).accessLog?.path, join(folder, 'access.log'))
  })

  test('a file that is no certificate is told by its content', () => {
    writeFileSync(join(folder, 'text.pem'), 'hello')
    const text = `listeners:\n  - name: web\n    port: 1\n    tls: { certificates: [{ cert: text.pem, key: text.pem }] }\n${routes}${clusters}`
    assert.deepEqual(problemsOf(text, folder), [
      `g.yaml:4:35: listeners[0].tls.certificates[0].cert: found "text.pem", expected a PEM file of certificates, but ${folder}/text.pem has no "BEGIN CERTIFICATE" block`,
      `g.yaml:4:50: listeners[0].tls.certificates[0].key: found "text.pem", expected a PEM file of a private key, but ${folder}/text.pem has no "BEGIN PRIVATE KEY" block`,
    ])
  })

  function pem(name: string, content: string): string {
    writeFileSync(join(folder, name), content)
    return name
  }

  function upstream(tls: string): string {
    return `${listeners}${routes}clusters:\n  - name: app\n    endpoints: [a:1]\n    tls: { ${tls} }\n`
  }

  test("a cluster's certificate and key belong together, as a listener's do", () => {
    const [one, two] = [makeCertificate({ names: ['one.example'] }), makeCertificate({ names: ['two.example'] })]
    pem('one.crt', one.cert)
    pem('one.key', one.key)
    pem('two.key', two.key)
    assert.deepEqual(problemsOf(upstream('cert: one.crt, key: one.key'), folder), [])
    assert.deepEqual(problemsOf(upstream('cert: one.crt, key: two.key'), folder), [
      `g.yaml:6:32: clusters[0].tls.key: found "two.key", expected the private key of the certificate ${folder}/one.crt`,
    ])
    pem('damaged.key', two.key.replace(/\n.{10}/, '\n!!!!!!!!!!'))
    assert.match(
      problemsOf(upstream('cert: one.crt, key: damaged.key'), folder).join('\n'),
      /^g\.yaml:6:32: clusters\[0\]\.tls\.key: found "damaged\.key", expected a private key and certificate OpenSSL can read, but it says: .+$/,
    )
  })

  test('every certificate of a file is read: Node passes over authorities that are damaged', () => {
    const { cert } = makeCertificate({ names: ['a.example'] })
    const damaged = cert.replace(/\n.{10}/, '\n!!!!!!!!!!')
    pem('authorities.pem', cert + damaged)
    pem('half.pem', cert.slice(0, 100))
    const expected = 'expected a PEM file of certificates, but'
    assert.deepEqual(problemsOf(upstream('ca: authorities.pem'), folder), [
      `g.yaml:6:16: clusters[0].tls.ca: found "authorities.pem", ${expected} certificate 2 of 2 in ${folder}/authorities.pem is damaged`,
    ])
    assert.deepEqual(problemsOf(upstream('ca: half.pem'), folder), [
      `g.yaml:6:16: clusters[0].tls.ca: found "half.pem", ${expected} the certificate in ${folder}/half.pem is damaged`,
    ])
  })

  test('the same certificate twice is told, whatever its file is called', () => {
    const { cert, key } = makeCertificate({ names: ['same.example'] })
    for (const name of ['first', 'second']) {
      pem(`${name}.crt`, cert)
      pem(`${name}.key`, key)
    }
    const entries = '{ cert: first.crt, key: first.key }, { cert: second.crt, key: second.key, names: [b.example] }'
    assert.deepEqual(problemsOf(`listeners: [{ name: web, port: 1, tls: { certificates: [${entries}] } }]\n${routes}${clusters}`, folder), [
      'g.yaml:1:102: listeners[0].tls.certificates[1].cert: found "second.crt", expected another certificate than that of certificates[0]; an entry may have several names',
    ])
  })

  test('a log file that may not be written is told', { skip: process.getuid?.() === 0 }, () => {
    const path = join(folder, 'read-only.log')
    writeFileSync(path, '')
    chmodSync(path, 0o400)
    assert.deepEqual(problemsOf(`${smallest}accessLog: { path: read-only.log }\n`, folder), [
      `g.yaml:4:20: accessLog.path: found "read-only.log", expected the path of a file, or stdout, but ${path} may not be written by this user`,
    ])
  })
})

test('a request must be allowed to wait for its connection', () => {
  const text = `
listeners: [{ name: web, port: 1 }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [127.0.0.1:1], maxWaiting: 0 }]
`
  assert.throws(() => parseConfig(text), /maxWaiting: found 0, expected a whole number from 1 to 1000000/)
})
