import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { ConnectionInfo, Fields, TlsFacts } from 'heddle/http'
import { parseConfig } from '../config/index.ts'
import type { ListenerConfig } from '../config/types.ts'
import { forwardedValue, Peer } from './peer.ts'
import { decrementMaxForwards, isForwarding, maxForwards, maxPasses, requestFields } from './request-fields.ts'
import { TrustList } from './trust.ts'

function listener(forwarded: ListenerConfig['forwarded']): ListenerConfig {
  const text = `
listeners: [{ name: web, port: 80, via: gw, forwarded: ${forwarded} }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [a:1] }]
`
  return parseConfig(text).listeners[0] as ListenerConfig
}

function peer(address: string, trust: string[] = [], tls?: TlsFacts): Peer {
  const family = address.includes(':') ? 'IPv6' : 'IPv4'
  const local = { address: '192.0.2.80', port: 80, family: 'IPv4' } as const
  const info: ConnectionInfo = { id: 1, remote: { address, port: 49_152, family }, local, tls }
  return new Peer(info, new TrustList(trust))
}

const secure: TlsFacts = { version: '', cipher: '', alpn: undefined, serverName: undefined, authorized: false, peerCertificate: undefined }

/** What is sent on, as lines; undefined for a request that goes in a circle. */
function build(fields: Fields, forwarded: ListenerConfig['forwarded'], from: Peer, authority = 'example.org'): string[] | undefined {
  const sent = requestFields(fields, authority, from, listener(forwarded), '1.1 gw')
  return sent?.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${sent[i + 1]}`] : []))
}

test("a peer's fields stay in their order; Via and X-Forwarded-* come behind", () => {
  deepEqual(build(['accept', '*/*', 'via', '1.0 before', 'x-a', '1'], 'x-forwarded', peer('192.0.2.1')), [
    'accept: */*',
    'via: 1.0 before',
    'x-a: 1',
    'via: 1.1 gw',
    'x-forwarded-for: 192.0.2.1',
    'x-forwarded-host: example.org',
    'x-forwarded-proto: http',
  ])
})

test('what a peer that is not trusted says of its client is replaced, whatever the listener writes', () => {
  const names = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port', 'forwarded', 'x-real-ip']
  const disguised = ['x_forwarded_for', 'x-forwarded_host', 'x_real_ip']
  const lies = [...names, ...disguised].flatMap((name) => [name, 'a lie'])
  deepEqual(build(lies, 'x-forwarded', peer('192.0.2.1')), [
    'via: 1.1 gw',
    'x-forwarded-for: 192.0.2.1',
    'x-forwarded-host: example.org',
    'x-forwarded-proto: http',
  ])
  deepEqual(build(lies, 'none', peer('192.0.2.1')), ['via: 1.1 gw'])
  deepEqual(build(lies, 'forwarded', peer('192.0.2.1')), ['via: 1.1 gw', 'forwarded: for=192.0.2.1;host=example.org;proto=http'])
})

test('what a trusted peer says is kept and extended, in one line each', () => {
  const told = [
    'x-forwarded-for',
    '1.1.1.1',
    'x-forwarded-for',
    '2.2.2.2',
    'x-forwarded-host',
    'shop.example',
    'x-forwarded-proto',
    'https',
  ]
  deepEqual(
    build(
      [...told, 'forwarded', 'for=1.1.1.1', 'x-real-ip', '1.1.1.1', 'x_forwarded_for', 'a lie'],
      'both',
      peer('10.0.0.1', ['10.0.0.0/8']),
    ),
    [
      'x-real-ip: 1.1.1.1',
      'via: 1.1 gw',
      'x-forwarded-for: 1.1.1.1, 2.2.2.2, 10.0.0.1',
      'x-forwarded-host: shop.example',
      'x-forwarded-proto: https',
      'forwarded: for=1.1.1.1, for=10.0.0.1;host=example.org;proto=http',
    ],
  )
  deepEqual(build(['x-forwarded-for', '1.1.1.1'], 'none', peer('10.0.0.1', ['10.0.0.1'])), ['x-forwarded-for: 1.1.1.1', 'via: 1.1 gw'])
})

test('RFC 7239: IPv6 in brackets and quotes, a host with a port in quotes', () => {
  deepEqual(build([], 'both', peer('2001:db8::1', [], secure), 'example.org:8443'), [
    'via: 1.1 gw',
    'x-forwarded-for: 2001:db8::1',
    'x-forwarded-host: example.org:8443',
    'x-forwarded-proto: https',
    'forwarded: for="[2001:db8::1]";host="example.org:8443";proto=https',
  ])
  equal(forwardedValue('a"b\\c'), '"a\\"b\\\\c"')
  equal(forwardedValue(''), '""')
})

test('IPv4 on a dual-stack socket is IPv4, a Unix socket is unknown, no authority is no host', () => {
  deepEqual(build([], 'forwarded', peer('::ffff:192.0.2.1'), ''), ['via: 1.1 gw', 'forwarded: for=192.0.2.1;proto=http'])
  deepEqual(build([], 'both', peer('/run/web.sock', ['0.0.0.0/0']), ''), [
    'via: 1.1 gw',
    'x-forwarded-for: unknown',
    'x-forwarded-proto: http',
    'forwarded: for=unknown;proto=http',
  ])
})

test('a request that came through here too often goes in a circle', () => {
  const passes = (count: number): string[] => Array.from({ length: count }, () => ['via', '1.1 gw (somewhere), 2 other']).flat()
  notEqual(build(passes(maxPasses - 1), 'none', peer('192.0.2.1')), undefined)
  equal(build(passes(maxPasses), 'none', peer('192.0.2.1')), undefined)
  equal(build(['via', Array.from({ length: maxPasses }, () => '1.1 gw').join(',')], 'none', peer('192.0.2.1')), undefined)
  // A pseudonym elsewhere than in its place is somebody else's.
  notEqual(
    build(['via', Array.from({ length: maxPasses }, () => 'gw other (gw), 1.1 gw2').join(', ')], 'none', peer('192.0.2.1')),
    undefined,
  )
})

test('only the fields of proxies are those of proxies', () => {
  for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'x_forwarded_proto', 'x-forwarded-'])
    equal(isForwarding(name), true, name)
  for (const name of ['x-forward', 'x-real', 'forwarded-by', 'from', 'x-request-id', 'x_request_id', 'x-forwardedfor'])
    equal(isForwarding(name), false, name)
})

test('Max-Forwards is read strictly and counted down', () => {
  equal(maxForwards([]), -1)
  equal(maxForwards(['max-forwards', '7']), 7)
  for (const value of ['', '-1', '1.5', '0x1', '9'.repeat(20)]) equal(maxForwards(['max-forwards', value]), -1, value)
  deepEqual(decrementMaxForwards(['a', 'b', 'max-forwards', '7'], 7), ['a', 'b', 'max-forwards', '6'])
})
