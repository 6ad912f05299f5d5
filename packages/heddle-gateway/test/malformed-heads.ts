/** Request heads that no version of HTTP allows, as the field lines of HTTP/2 and HTTP/3. */

export const smuggled = 'x\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n'

/** A request's lines, pseudo-header fields first. */
function request(method: string, path: string, ...fields: string[]): string[] {
  return [':method', method, ':scheme', 'http', ':authority', 'example.org', ':path', path, ...fields]
}

function lines(...all: string[]): string[] {
  return all
}

/** A good GET with these fields besides. */
function fields(...more: string[]): string[] {
  return request('GET', '/attack', ...more)
}

/** A request whose pseudo-header fields are those of a good one but for what is given. */
function pseudo(changes: Record<string, string | undefined>): string[] {
  const all = { ':method': 'GET', ':scheme': 'http', ':authority': 'example.org', ':path': '/attack', ...changes }
  return Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [name, value]))
}

/** Each is a whole request. None must reach an upstream, whatever that speaks, and each costs its client the stream. */
export const malformedHeads: Readonly<Record<string, readonly string[]>> = {
  'CR LF in a value': fields('x-a', smuggled),
  'LF in a value': fields('x-a', 'b\nx-b: c'),
  'CR in a value': fields('x-a', 'b\rc'),
  'NUL in a value': fields('x-a', 'b\0c'),
  'CR LF in a cookie crumb': fields('cookie', 'a=1', 'cookie', 'b=2\r\nx-b: c'),
  'white space around a value': fields('x-a', ' b'),
  'CR LF in a name': fields('x-a: b\r\nx-b', 'c'),
  'a colon in a name': fields('x:a', 'b'),
  'a space in a name': fields('transfer-encoding ', 'chunked'),
  'NUL in a name': fields('x\0a', 'b'),
  'an upper-case name': fields('Transfer-Encoding', 'chunked'),
  'an empty name': fields('', 'b'),
  'an octet above ASCII in a name': fields('x-\xe4', 'b'),
  'CR LF in :path': pseudo({ ':path': `/attack HTTP/1.1\r\nHost: evil\r\n\r\nGET /smuggled` }),
  'a space in :path': pseudo({ ':path': '/attack HTTP/1.1' }),
  'a tab in :path': pseudo({ ':path': '/attack\tHTTP/1.1' }),
  'NUL in :path': pseudo({ ':path': '/attack\0' }),
  'a fragment in :path': pseudo({ ':path': '/attack#x' }),
  'an empty :path': pseudo({ ':path': '' }),
  'a :path without a slash': pseudo({ ':path': 'attack' }),
  'a :path that is a URL': pseudo({ ':path': 'http://evil/attack' }),
  '* as the :path of a GET': pseudo({ ':path': '*' }),
  'no :path': pseudo({ ':path': undefined }),
  'CR LF in :method': pseudo({ ':method': 'GET /smuggled HTTP/1.1\r\nX: ' }),
  'a space in :method': pseudo({ ':method': 'GET /smuggled' }),
  'an empty :method': pseudo({ ':method': '' }),
  'no :method': pseudo({ ':method': undefined }),
  'CR LF in :scheme': pseudo({ ':scheme': 'http\r\nx-a: b' }),
  'a :scheme that is a URL': pseudo({ ':scheme': 'http://evil/?' }),
  'a :scheme that is not of HTTP': pseudo({ ':scheme': 'file' }),
  'no :scheme': pseudo({ ':scheme': undefined }),
  'CR LF in :authority': pseudo({ ':authority': 'example.org\r\nx-a: b' }),
  'a path in :authority': pseudo({ ':authority': 'example.org/attack' }),
  'user information in :authority': pseudo({ ':authority': 'user@example.org' }),
  'a space in :authority': pseudo({ ':authority': 'example.org evil' }),
  'an empty :authority': pseudo({ ':authority': '' }),
  'neither :authority nor host': pseudo({ ':authority': undefined }),
  'a host that differs from :authority': fields('host', 'evil.example'),
  'two hosts': lines(...request('GET', '/attack', 'host', 'example.org', 'host', 'evil.example')),
  'CR LF in host': fields('host', 'example.org\r\nx-a: b'),
  ':authority twice': lines(...request('GET', '/attack').slice(0, 6), ':authority', 'evil.example', ':path', '/attack'),
  ':path twice': lines(...request('GET', '/'), ':path', '/attack'),
  ':method twice': lines(':method', 'POST', ...request('GET', '/attack')),
  'a pseudo-header field after a regular one': lines(
    ':method',
    'GET',
    ':scheme',
    'http',
    ':authority',
    'example.org',
    'x-a',
    'b',
    ':path',
    '/attack',
  ),
  'an unknown pseudo-header field': lines(...request('GET', '/attack'), ':evil', 'b'),
  ':status in a request': lines(...request('GET', '/attack'), ':status', '200'),
  'transfer-encoding: identity': fields('transfer-encoding', 'identity'),
  connection: fields('connection', 'close'),
  'connection that names a field': fields('connection', 'x-auth', 'x-auth', '1'),
  'keep-alive': fields('keep-alive', 'timeout=5'),
  'proxy-connection': fields('proxy-connection', 'keep-alive'),
  'upgrade to h2c': fields('upgrade', 'h2c', 'http2-settings', 'AAMAAABk'),
  'te other than trailers': fields('te', 'gzip'),
  'an extended CONNECT that was not offered': lines(...request('CONNECT', '/attack'), ':protocol', 'websocket'),
  ':protocol without CONNECT': lines(...request('GET', '/attack'), ':protocol', 'websocket'),
  'CONNECT with a :path': lines(...request('CONNECT', '/attack')),
}
