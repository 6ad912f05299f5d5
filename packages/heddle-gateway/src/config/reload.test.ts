import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig } from './load.ts'
import { reloaded, ReloadError } from './reload.ts'
import type { Config } from './types.ts'

const parts = {
  head: 'admin: { port: 9990 }\n',
  listeners: 'listeners: [{ name: web, port: 8080 }, { name: more, port: 8081 }]\n',
  routes: 'routes: [{ name: a, cluster: one, match: { pathPrefix: /a } }, { name: b, cluster: two }]\n',
  clusters: 'clusters: [{ name: one, endpoints: [127.0.0.1:1] }, { name: two, endpoints: [127.0.0.1:2] }]\n',
  tail: '',
}

function config(changes: Partial<typeof parts> = {}): Config {
  const { head, listeners, routes, clusters, tail } = { ...parts, ...changes }
  return parseConfig(head + listeners + routes + clusters + tail)
}

test('what did not change is the object it was, what did is not, and order counts for nothing', () => {
  const before = config()
  const after = reloaded(
    before,
    config({
      routes: 'routes: [{ name: b, cluster: two, timeout: 1s }, { name: a, cluster: one, match: { pathPrefix: /a } }]\n',
      clusters:
        'clusters: [{ name: three, endpoints: [127.0.0.1:3] }, { name: two, endpoints: [127.0.0.1:2] }, { name: one, endpoints: [127.0.0.1:4] }]\n',
      tail: 'drainTimeout: 9s\n',
    }),
    false,
  )
  equal(after.routes[1], before.routes[0])
  ok(!before.routes.includes(after.routes[0] as never))
  equal(after.clusters[1], before.clusters[1])
  ok(!before.clusters.includes(after.clusters[2] as never))
  deepEqual([after.drainTimeout, after.tunnelGrace], [9_000, 6_000])
})

test('a configuration that went through a channel between processes is compared by what it says', () => {
  const before = config()
  deepEqual(reloaded(structuredClone(before), structuredClone(before), false), before)
})

const restarts: [why: string, changes: Partial<typeof parts>, paths: string[]][] = [
  ['workers', { tail: 'workers: 2\n' }, ['workers']],
  ['the admin server', { head: '' }, ['admin']],
  ['the access log', { tail: 'accessLog: { path: stdout }\n' }, ['accessLog']],
  ['a listener more or less', { listeners: 'listeners: [{ name: web, port: 8080 }]\n' }, ['listeners']],
  [
    'addresses, names and limits of listeners, all told at once',
    {
      listeners:
        'listeners: [{ name: www, host: 127.0.0.1, port: 8082, limits: { idleTimeout: 1s } }, { name: more, port: 8081, http2: { maxConcurrentStreams: 5 }, protocols: [h1], upgrades: [] }]\n',
    },
    [
      'listeners[0].name',
      'listeners[0].host',
      'listeners[0].port',
      'listeners[0].limits',
      'listeners[1].upgrades',
      'listeners[1].protocols',
      'listeners[1].http2',
    ],
  ],
  [
    'extended CONNECT that was not offered',
    { routes: 'routes: [{ name: a, cluster: one }, { name: b, cluster: two, extendedConnect: true }]\n' },
    ['routes[1].extendedConnect'],
  ],
]

for (const [why, changes, paths] of restarts) {
  test(`it takes a restart: ${why}`, () => {
    throws(
      () => reloaded(config(), config(changes), false),
      (error) => {
        ok(error instanceof ReloadError)
        deepEqual(error.paths, paths)
        for (const path of paths) ok(error.message.includes(path))
        return true
      },
    )
  })
}

test('what listeners say of clients may change, and so may extended CONNECT where it is offered', () => {
  const after = config({
    listeners: 'listeners: [{ name: web, port: 8080, via: other, trust: [10.0.0.0/8], forwarded: both }, { name: more, port: 8081 }]\n',
    routes: 'routes: [{ name: b, cluster: two, extendedConnect: true }]\n',
  })
  deepEqual(reloaded(config(), after, true).listeners, after.listeners)
})
