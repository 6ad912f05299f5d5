import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../http/index.ts'
import { listen, systemClock } from '../io/index.ts'
import { Response, serve, type ServeOptions } from './index.ts'

const fetch = (): Response => new Response()

async function refusal(options: unknown): Promise<string> {
  const server = await serve(options as ServeOptions).catch((error: unknown) => {
    assert.ok(error instanceof UsageError, String(error))
    return error.message
  })
  if (typeof server === 'string') return server
  await server.close({ deadline: 0 })
  return ''
}

test('an option that is none is refused by its name, and not taken for the default', async () => {
  const refused: [unknown, string][] = [
    [{ fetch, prt: 1 }, 'serve: there is no option prt; did you mean port?'],
    [{ fetch, host: '127.0.0.1' }, 'serve: there is no option host; did you mean hostname?'],
    [{ fetch, maxConection: 1 }, 'serve: there is no option maxConection; did you mean maxConnections?'],
    [{ fetch, limits: { headTimout: 3 } }, 'serve: there is no option limits.headTimout; did you mean limits.headTimeout?'],
    [{ fetch, limits: { headTimeout: '3' } }, 'serve: limits.headTimeout must be a number, 0 or more'],
    [{ fetch, http2: { streamWindow: 2 ** 31 } }, 'serve: http2.streamWindow must be a whole number from 1 to 2,147,483,647'],
    [{ fetch, http2: { connectionWindow: 1.5 } }, 'serve: http2.connectionWindow must be a whole number from 1 to 2,147,483,647'],
    [{ fetch, http2: { headerTableSize: Infinity } }, 'serve: http2.headerTableSize must be a whole number from 0 to 4,294,967,295'],
    [{ fetch, http2: { maxConcurrentStreams: 1.5 } }, 'serve: http2.maxConcurrentStreams must be a whole number, or Infinity'],
    [{ fetch, limits: 3 }, 'serve: limits must be an object'],
    [{ fetch, tls: { crt: '' } }, 'tls: there is no option crt; did you mean cert?'],
    [{ fetch, tls: [] }, 'tls: the options must be an object'],
    [{ fetch, tls: null }, 'tls: the options must be an object'],
    [{ fetch, maxConnections: '10' }, 'maxConnections must be a number, 0 or more'],
    [{ fetch, maxHandshakes: NaN }, 'maxHandshakes must be a number, 0 or more'],
    [{ fetch, handshakeTimeout: 0 }, 'handshakeTimeout must be a number, 1 or more'],
    [undefined, 'serve: the options must be an object'],
    [{ port: 0 }, 'serve needs fetch or onExchange'],
    [{ fetch, onExchange: fetch }, 'serve takes fetch or onExchange, not both'],
    [{ fetch: 1 }, 'serve: fetch must be a function, or an object with a method fetch'],
    [{ fetch: null }, 'serve: fetch must be a function, or an object with a method fetch'],
    [{ fetch: { default: { fetch } } }, 'serve: fetch must be a function, or an object with a method fetch'],
    [{ onExchange: {} }, 'serve: onExchange must be a function'],
    [{ fetch, websocket: 'yes' }, 'serve: websocket must be true or false'],
    [{ fetch, protocols: ['h3'] }, 'serve: HTTP/3 needs tls'],
    [{ fetch, protocols: ['h3'], tls: {}, path: '/tmp/x' }, 'serve: HTTP/3 is not to be had on a Unix socket'],
    [{ fetch, protocols: ['h4'] }, "serve: protocols must be a list of 'h3', 'h2' and 'http/1.1', or of some of them"],
    [{ fetch, http3: { headTimeot: 1 } }, 'serve: there is no option http3.headTimeot; did you mean http3.headTimeout?'],
    [{ fetch, quicKey: new Uint8Array(31) }, 'serve: quicKey must be 32 octets'],
    [{ fetch, quicKey: 'x'.repeat(32) }, 'serve: quicKey must be 32 octets'],
    [
      { fetch, tls: {}, origins: ['https://a.example/'] },
      'serve: origins must be a list of origins as a browser writes them, such as https://a.example',
    ],
    [{ fetch, origins: ['https://a.example'] }, 'serve: origins needs tls'],
    [{ fetch, altSvc: 'no' }, 'serve: altSvc must be true or false'],
    [{ fetch, protocols: [] }, "serve: protocols must be a list of 'h3', 'h2' and 'http/1.1', or of some of them"],
    [{ fetch, protocols: 'h2' }, "serve: protocols must be a list of 'h3', 'h2' and 'http/1.1', or of some of them"],
  ]
  for (const [options, message] of refused) assert.equal(await refusal(options), message)
})

test('options that are known and undefined are as absent', async () => {
  assert.equal(
    await refusal({ fetch, hostname: '127.0.0.1', tls: undefined, limits: { headTimeout: undefined }, maxConnections: undefined }),
    '',
  )
})

test('close refuses what is none', async () => {
  const server = await serve({ hostname: '127.0.0.1', fetch })
  assert.throws(() => server.close({ deadlin: 0 } as never), { message: 'close: there is no option deadlin; did you mean deadline?' })
  await server.close({ deadline: 0 })
})

test('so does the listener below', async () => {
  const options = { clock: systemClock(), onConnection: () => {}, hostnam: '::1' }
  await assert.rejects(listen(options as never), { message: 'listen: there is no option hostnam; did you mean hostname?' })
})
