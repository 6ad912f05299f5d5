import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../http/index.ts'
import { ProxyExemptions, ProxyRules } from './proxy.ts'
import { routeTo } from './route.ts'
import { Settings } from './settings.ts'

const site = (rules: ProxyRules, url: string): string | undefined => {
  const { protocol, hostname, port } = new URL(url)
  const scheme = protocol.slice(0, -1)
  const proxy = rules.find(scheme, hostname.replace(/^\[|\]$/g, ''), port === '' ? (scheme === 'https' ? 443 : 80) : Number(port))
  return proxy === undefined ? undefined : `${proxy.secure ? 'https' : 'http'} ${proxy.host} ${proxy.port}`
}

test('none is none, whatever the environment says', () => {
  const rules = new ProxyRules('none', { http_proxy: 'http://proxy.test:3128' })
  assert.deepEqual([rules.any, site(rules, 'http://a.test')], [false, undefined])
})

test('the environment: one variable per scheme, all_proxy for the rest, small letters first', () => {
  const rules = new ProxyRules('env', { http_proxy: 'http://small.test:1', HTTP_PROXY: 'http://capital.test:2', ALL_PROXY: 'all.test:3' })
  assert.equal(site(rules, 'http://a.test'), 'http small.test 1')
  assert.equal(site(rules, 'https://a.test'), 'http all.test 3')
  const capitals = new ProxyRules('env', { HTTP_PROXY: 'http://capital.test', HTTPS_PROXY: 'https://[2001:db8::1]/', NO_PROXY: 'a.test' })
  assert.equal(site(capitals, 'http://b.test'), 'http capital.test 80')
  assert.equal(site(capitals, 'https://b.test'), 'https 2001:db8::1 443')
  assert.equal(site(capitals, 'https://a.test'), undefined)
  assert.equal(new ProxyRules('env', { http_proxy: '', HTTP_PROXY: '' }).any, false)
})

test('in a CGI script HTTP_PROXY is what a client sent, and is not believed', () => {
  const environment = { HTTP_PROXY: 'http://evil.test', HTTPS_PROXY: 'http://good.test', REQUEST_METHOD: 'GET' }
  const rules = new ProxyRules('env', environment)
  assert.equal(site(rules, 'http://a.test'), undefined)
  assert.equal(site(rules, 'https://a.test'), 'http good.test 80')
  assert.equal(site(new ProxyRules('env', { ...environment, http_proxy: 'http://good.test' }), 'http://a.test'), 'http good.test 80')
})

test('an explicit proxy, with exemptions', () => {
  assert.equal(site(new ProxyRules(new URL('http://p.test:8080'), {}), 'https://a.test'), 'http p.test 8080')
  const rules = new ProxyRules({ url: 'p.test:8080', noProxy: 'a.test' }, { http_proxy: 'http://other.test' })
  assert.equal(site(rules, 'http://b.test'), 'http p.test 8080')
  assert.equal(site(rules, 'http://a.test'), undefined)
})

test('what is no http or https proxy is refused, without telling its password', () => {
  for (const proxy of ['socks5://user:secret@p.test', 'http://user:secret@', 'ftp://p.test']) {
    assert.throws(
      () => new ProxyRules(proxy, {}),
      (error) => error instanceof UsageError && !error.message.includes('secret'),
      proxy,
    )
  }
})

test('user and password become Basic credentials of their UTF-8', () => {
  const authorization = (url: string): string | undefined => new ProxyRules(url, {}).find('http', 'a.test', 80)?.authorization
  assert.equal(authorization('http://p.test'), undefined)
  assert.equal(authorization('http://Aladdin:open%20sesame@p.test'), 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==')
  assert.equal(authorization('http://test:123%C2%A3@p.test'), 'Basic dGVzdDoxMjPCow==')
  assert.equal(authorization('http://only-user@p.test'), `Basic ${Buffer.from('only-user:').toString('base64')}`)
  assert.equal(authorization('http://100%@p.test'), `Basic ${Buffer.from('100%:').toString('base64')}`)
})

test('NO_PROXY', () => {
  const cases: [list: string, host: string, port: number, exempt: boolean][] = [
    ['', 'a.test', 80, false],
    ['*', 'a.test', 80, true],
    ['a.test', 'a.test', 80, true],
    ['A.Test', 'a.test', 80, true],
    ['a.test', 'sub.a.test', 80, true],
    ['a.test', 'nota.test', 80, false],
    ['.a.test', 'a.test', 80, true],
    ['.a.test', 'sub.a.test', 80, true],
    ['*.a.test', 'sub.a.test', 80, true],
    ['a.test.', 'a.test', 80, true],
    ['b.test, a.test', 'a.test', 80, true],
    ['b.test\ta.test', 'a.test', 80, true],
    ['a.test:8080', 'a.test', 8080, true],
    ['a.test:8080', 'sub.a.test', 8080, true],
    ['a.test:8080', 'a.test', 80, false],
    ['192.0.2.1', '192.0.2.1', 80, true],
    ['192.0.2.1', '192.0.2.10', 80, false],
    ['2.1', '192.0.2.1', 80, false],
    ['192.0.2.1:81', '192.0.2.1', 81, true],
    ['192.0.2.1:81', '192.0.2.1', 80, false],
    ['192.0.2.0/24', '192.0.2.200', 80, true],
    ['192.0.2.0/24', '192.0.3.1', 80, false],
    ['192.0.2.0/33', '192.0.2.1', 80, false],
    ['a.test/8', 'a.test', 80, false],
    ['::1', '::1', 80, true],
    ['[::1]', '::1', 80, true],
    ['0:0:0:0:0:0:0:1', '::1', 80, true],
    ['[::1]:81', '::1', 81, true],
    ['[::1]:81', '::1', 80, false],
    ['fd00::/8', 'fd12::1', 80, true],
    ['fd00::/8', 'fe80::1', 80, false],
    ['localhost', '127.0.0.1', 80, false],
  ]
  for (const [list, host, port, exempt] of cases) assert.equal(new ProxyExemptions(list).has(host, port), exempt, `${list} ${host}:${port}`)
})

test('the way to an origin', () => {
  const http = { scheme: 'http', host: 'a.test', port: 80 }
  const https = { scheme: 'https', host: 'a.test', port: 443 }
  const direct = new Settings({ localAddress: '127.0.0.1', family: 4 })
  assert.deepEqual([routeTo(http, direct).target, routeTo(http, direct).options.tls], [{ host: 'a.test', port: 80 }, undefined])
  assert.deepEqual([routeTo(http, direct).options.localAddress, routeTo(http, direct).options.family], ['127.0.0.1', 4])
  assert.equal(routeTo(https, direct).options.tls, direct.tls, 'one object: io caches by identity')

  const proxied = new Settings({ proxy: 'http://u:p@p.test:3128', tls: { ca: '-----BEGIN CERTIFICATE-----' } })
  const authorization = 'Basic dTpw'
  const plain = routeTo(http, proxied)
  assert.deepEqual([plain.target, plain.options.proxy, plain.options.tls], [{ host: 'p.test', port: 3128 }, undefined, undefined])
  assert.deepEqual([plain.http1.absoluteForm, plain.http1.proxyAuthorization], [true, authorization])
  const tunnel = routeTo(https, proxied)
  assert.deepEqual([tunnel.target, tunnel.http1.absoluteForm], [{ host: 'a.test', port: 443 }, undefined])
  assert.deepEqual(tunnel.options.proxy, { host: 'p.test', port: 3128, authorization, tls: undefined })
  const secure = routeTo(http, new Settings({ proxy: 'https://p.test', tls: { ca: '-----BEGIN CERTIFICATE-----' } }))
  assert.deepEqual([secure.target, secure.options.tls?.ca], [{ host: 'p.test', port: 443 }, undefined])

  const unix = new Settings({ socketPath: '/run/a.sock' })
  assert.deepEqual(routeTo(http, unix).target, { path: '/run/a.sock' })
  assert.equal(routeTo(https, unix).options.tls?.servername, 'a.test')
})
