import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { requestHead, type Head } from 'heddle/http'
import type { MatchConfig, RouteConfig } from '../config/index.ts'
import { hostOf, isNormalPath, isPlainPath, readPath, Router } from './index.ts'

function route(name: string, match: Partial<MatchConfig>): RouteConfig {
  return {
    name,
    match: { hosts: [], pathPrefix: '/', grpcService: undefined, methods: [], headers: [], ...match },
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
  }
}

function get(path: string, authority = 'example.org', fields: readonly string[] = [], method = 'GET'): Head {
  return requestHead(method, 'http', authority, path, fields)
}

function nameOf(router: Router, head: Head): string {
  const match = router.match(head)
  return typeof match === 'string' ? match : match.name
}

describe('the router', () => {
  test('finds the calls of a gRPC service by their path and type', () => {
    const router = new Router([
      route('greeter', { grpcService: 'helloworld.v1.Greeter' }),
      route('prefix', { pathPrefix: '/helloworld.v1.Greeter' }),
      route('rest', {}),
    ])
    const call = (path: string, type: string, method = 'POST'): string =>
      nameOf(router, get(path, 'example.org', ['te', 'trailers', 'content-type', type], method))
    assert.equal(call('/helloworld.v1.Greeter/SayHello', 'application/grpc'), 'greeter')
    assert.equal(call('/helloworld.v1.Greeter/SayHello', 'application/grpc+proto'), 'greeter')
    assert.equal(call('/helloworld.v1.Greeter/SayHello', 'application/grpc; charset=utf-8'), 'greeter')
    for (const type of ['application/grpc-web', 'application/json', 'application/grpcx']) {
      assert.equal(call('/helloworld.v1.Greeter/SayHello', type), 'prefix')
    }
    assert.equal(call('/helloworld.v1.Greeter/SayHello', 'application/grpc', 'GET'), 'prefix')
    assert.equal(call('/helloworld.v1.GreeterAdmin/SayHello', 'application/grpc'), 'rest')
    assert.equal(call('/helloworld.v1/Greeter/SayHello', 'application/grpc'), 'rest')
    assert.equal(call('/helloworld.v1.Greeter/..%2fadmin', 'application/grpc'), 'unsafe_path')
    assert.equal(nameOf(router, get('/helloworld.v1.Greeter/SayHello', 'example.org', [], 'POST')), 'prefix')
  })

  test('takes the first route in order', () => {
    const router = new Router([route('one', { pathPrefix: '/a' }), route('two', { pathPrefix: '/a/b' }), route('rest', {})])
    assert.equal(nameOf(router, get('/a/b')), 'one')
    assert.equal(nameOf(router, get('/c')), 'rest')
  })

  test('matches whole segments of a prefix', () => {
    const router = new Router([route('api', { pathPrefix: '/api' }), route('docs', { pathPrefix: '/docs/' })])
    const cases: readonly [string, string][] = [
      ['/api', 'api'],
      ['/api/', 'api'],
      ['/api/x', 'api'],
      ['/api?x=/docs', 'api'],
      ['/apix', 'no_route'],
      ['/API', 'no_route'],
      ['/', 'no_route'],
      ['/docs', 'docs'],
      ['/docs/x', 'docs'],
    ]
    for (const [path, expected] of cases) assert.equal(nameOf(router, get(path)), expected, path)
  })

  test('knows hosts without case, port and final dot', () => {
    const router = new Router([
      route('exact', { hosts: ['example.org', '[::1]'] }),
      route('below', { hosts: ['*.example.org'] }),
      route('deep', { hosts: ['*.a.example.org'], pathPrefix: '/deep' }),
      route('any', { pathPrefix: '/any' }),
    ])
    const cases: readonly [string, string, string][] = [
      ['example.org', '/', 'exact'],
      ['EXAMPLE.org:8080', '/', 'exact'],
      ['example.org.', '/', 'exact'],
      ['[::1]:80', '/', 'exact'],
      ['[::1]', '/', 'exact'],
      ['www.example.org', '/', 'below'],
      ['x.a.example.org', '/deep', 'below'],
      ['a.b.c.example.org', '/', 'below'],
      ['badexample.org', '/', 'no_route'],
      ['.example.org', '/', 'no_route'],
      ['other.net', '/any', 'any'],
      ['', '/any', 'any'],
      ['', '/', 'no_route'],
    ]
    for (const [authority, path, expected] of cases) assert.equal(nameOf(router, get(path, authority)), expected, authority)
  })

  test('keeps the order of the file across exact, wildcard and unlimited routes', () => {
    const router = new Router([
      route('wild', { hosts: ['*.example.org'], pathPrefix: '/w' }),
      route('any', { pathPrefix: '/w/any' }),
      route('exact', { hosts: ['a.example.org'] }),
    ])
    assert.equal(nameOf(router, get('/w/any', 'a.example.org')), 'wild')
    assert.equal(nameOf(router, get('/x', 'a.example.org')), 'exact')
    assert.equal(nameOf(router, get('/w/any', 'example.org')), 'any')
  })

  test('looks at methods and fields', () => {
    const router = new Router([
      route('write', { methods: ['POST', 'PUT'] }),
      route('beta', { headers: [{ name: 'x-beta', value: undefined }] }),
      route('tenant', {
        headers: [
          { name: 'x-tenant', value: 'a' },
          { name: 'x-role', value: 'b' },
        ],
      }),
    ])
    assert.equal(nameOf(router, get('/', 'h', [], 'PUT')), 'write')
    assert.equal(nameOf(router, get('/', 'h', [], 'put')), 'no_route')
    assert.equal(nameOf(router, get('/', 'h', ['x-beta', ''])), 'beta')
    assert.equal(nameOf(router, get('/', 'h', ['x-tenant', 'z', 'x-role', 'b', 'x-tenant', 'a'])), 'tenant')
    assert.equal(nameOf(router, get('/', 'h', ['x-tenant', 'a'])), 'no_route')
  })

  test('sees an Upgrade as the GET it was, OPTIONS * only at the root, and no route for a plain CONNECT', () => {
    const router = new Router([route('get', { methods: ['GET'] }), route('rest', {})])
    assert.equal(nameOf(router, requestHead('CONNECT', 'http', 'h', '/chat', [], 'websocket')), 'get')
    assert.equal(nameOf(router, get('*', 'h', [], 'OPTIONS')), 'rest')
    assert.equal(nameOf(router, requestHead('CONNECT', '', 'h:443', '', [])), 'no_route')
    assert.equal(nameOf(new Router([route('api', { pathPrefix: '/api' })]), get('*', 'h', [], 'OPTIONS')), 'no_route')
  })

  test('refuses dot segments in every spelling', () => {
    const router = new Router([route('all', {})])
    const unsafe = [
      '/..',
      '/../x',
      '/a/../b',
      '/./a',
      '/a/.',
      '/%2e%2e/a',
      '/a/%2E%2e',
      '/a/.%2e/',
      '/a/..%2fb',
      '/a%2f..',
      '/a/..%5cb',
      '/a/..\\b',
    ]
    unsafe.push('/a/..;/b', '/a/..;x=1/b', '/a//../b', '/a%00', '/a/%00.html')
    for (const path of unsafe) assert.equal(nameOf(router, get(path)), 'unsafe_path', path)
    const safe = [
      '/.well-known/x',
      '/a/...',
      '/a/..b',
      '/a..',
      '/a/b..;',
      '/?x=/../y',
      '/a?..%2f',
      '/%2ewell-known',
      '/a;v=1/b',
      '/100%',
      '/%zz',
    ]
    for (const path of safe) assert.equal(nameOf(router, get(path)), 'all', path)
  })

  test('refuses a path that takes different routes by how it is read, and no other', () => {
    const router = new Router([route('admin', { pathPrefix: '/admin' }), route('npm', { pathPrefix: '/npm' }), route('rest', {})])
    const cases: readonly [string, string][] = [
      ['/%61dmin', 'admin'],
      ['/admin%2Fx', 'unsafe_path'],
      ['//admin', 'unsafe_path'],
      ['/\\admin', 'unsafe_path'],
      ['/x%2Fadmin', 'rest'],
      ['//x', 'rest'],
      ['/admin//x', 'admin'],
      ['/npm/@scope%2Fname', 'npm'],
      ['/admin%3fx', 'rest'],
      ['/%2561dmin', 'rest'],
    ]
    for (const [path, expected] of cases) assert.equal(nameOf(router, get(path)), expected, path)
  })

  test('does not grow with the hosts clients make up', () => {
    const router = new Router([route('a', { hosts: ['a.org'] }), route('rest', {})])
    for (let i = 0; i < 5_000; i++) assert.equal(nameOf(router, get('/', `h${i}.org`)), 'rest')
    assert.equal(nameOf(router, get('/', 'a.org')), 'a')
  })
})

/** The same, slowly: every route in turn, every condition as its documentation says it. */
function slowMatch(routes: readonly RouteConfig[], head: Head): string {
  const firstFor = (path: string): string => {
    const segments = path.split('/')
    const found = routes.find(({ match }) => {
      const wanted = match.pathPrefix.split('/').filter((part, index, all) => index < all.length - 1 || part !== '')
      return (
        (match.hosts.length === 0 ||
          match.hosts.some((pattern) =>
            pattern.startsWith('*.')
              ? hostOf(head.authority).length > pattern.length - 1 && hostOf(head.authority).endsWith(pattern.slice(1))
              : hostOf(head.authority) === pattern,
          )) &&
        wanted.every((part, index) => segments[index] === part) &&
        (match.methods.length === 0 || match.methods.includes(head.method)) &&
        match.headers.every(({ name, value }) =>
          head.fields.some(
            (field, index) => index % 2 === 0 && field === name && (value === undefined || head.fields[index + 1] === value),
          ),
        )
      )
    })
    return found?.name ?? 'no_route'
  }
  const [path = ''] = head.path.split('?')
  if (path.includes('%00')) return 'unsafe_path'
  const strict = path.replaceAll(/%(2e|2E|61|62)/g, (escape) => decodeURIComponent(escape)).replaceAll('%2f', '%2F')
  const loose = strict.replaceAll('%2F', '/').replaceAll('\\', '/').replaceAll(/\/+/g, '/')
  if (loose.split('/').some((segment) => segment === '.' || segment === '..')) return 'unsafe_path'
  return firstFor(strict) === firstFor(loose) ? firstFor(strict) : 'unsafe_path'
}

test('the router agrees with its slow twin', () => {
  const host = fc.constantFrom('a.org', 'b.a.org', 'c.b.a.org', 'b.org')
  const pattern = fc.oneof(host, fc.constantFrom('*.a.org', '*.b.a.org', '*.org'))
  const prefix = fc.array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 3 }).map((parts) => `/${parts.join('/')}`)
  const conditions = fc.record({
    hosts: fc.array(pattern, { maxLength: 2 }),
    pathPrefix: prefix,
    methods: fc.subarray(['GET', 'POST']),
    headers: fc.array(fc.record({ name: fc.constantFrom('x', 'y'), value: fc.constantFrom('1', '2', undefined) }), { maxLength: 1 }),
  })
  const piece = fc.constantFrom('a', 'b', 'ab', '/', '/', '/', '//', '%61', '%62', '%2f', '%2F', '\\', '.', '..', '%2e', '%00', '?', 'a/b')
  const request = fc
    .record({
      path: fc.array(piece, { maxLength: 6 }).map((parts) => `/${parts.join('')}`),
      host,
      suffix: fc.constantFrom('', ':80', '.', '.:80'),
      method: fc.constantFrom('GET', 'POST', 'PUT'),
      fields: fc.constantFrom([], ['x', '1'], ['y', '2', 'x', '2']),
    })
    .map(({ path, host: name, suffix, method, fields }) => get(path, name.toUpperCase() + suffix, fields, method))
  fc.assert(
    fc.property(fc.array(conditions, { maxLength: 6 }), fc.array(request, { minLength: 1, maxLength: 5 }), (matches, heads) => {
      const routes = matches.map((match, index) => route(`r${index}`, match))
      const router = new Router(routes)
      for (const head of heads) assert.equal(nameOf(router, head), slowMatch(routes, head), `${head.authority} ${head.path}`)
    }),
    { numRuns: 500 },
  )
})

test('a plain path has one reading, itself', () => {
  const char = fc.constantFrom(...'/ab.%2eF?\\;')
  fc.assert(
    fc.property(fc.string({ unit: char, maxLength: 12 }), (text) => {
      const path = `/${text}`
      if (!isPlainPath(path)) return
      const [bare] = path.split('?')
      assert.deepEqual(readPath(path), { strict: bare, loose: bare })
    }),
  )
})

test('rules are written in normal form', () => {
  for (const path of ['/', '/api', '/api/v1/', '/.well-known', '/caf%C3%A9']) assert.equal(isNormalPath(path), true, path)
  for (const path of ['/a/../b', '//', '/a//b', '/%61', '/caf%c3%a9', '/a?b', '/a\\b', '/a%2Fb'])
    assert.equal(isNormalPath(path), false, path)
})

test('path parameters do not lead past a rule', () => {
  const router = new Router([route('admin', { pathPrefix: '/admin' }), route('all', {})])
  const cases: Readonly<Record<string, readonly string[]>> = {
    unsafe_path: ['/admin;x/y', '/;x/admin/y', '/admin%3bx/y', '/;/;a/admin', '/admin;', '/%5c;x%2fadmin;y'],
    all: ['/a;x/y', '/a;admin/y', '/;admin', '/a?;/admin'],
    admin: ['/admin/y;x', '/admin/;x/y'],
  }
  for (const [name, paths] of Object.entries(cases)) for (const path of paths) assert.equal(nameOf(router, get(path)), name, path)
  assert.equal(isNormalPath('/admin;x'), false)
})
