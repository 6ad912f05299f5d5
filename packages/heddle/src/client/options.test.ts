import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../http/index.ts'
import { dial, systemClock, type DialOptions } from '../io/index.ts'
import { Client } from './index.ts'
import { Settings } from './settings.ts'

function refusal(options: unknown): string {
  try {
    new Client(options as never)
  } catch (error) {
    assert.ok(error instanceof UsageError, String(error))
    return error.message
  }
  return ''
}

test('an option that is none is refused by its name, and not taken for the default', () => {
  const refused: [unknown, string][] = [
    [{ maxConections: 3 }, 'Client: there is no option maxConections; did you mean maxConnections?'],
    [{ timeout: 3 }, 'Client: there is no option timeout'],
    [{ limits: { headTimout: 3 } }, 'Client: there is no option limits.headTimout; did you mean limits.headTimeout?'],
    [{ limits: { bodyTimeout: -1 } }, 'Client: limits.bodyTimeout must be a number, 0 or more'],
    [{ tls: { rejectUnauthorised: true } }, 'Client: there is no option tls.rejectUnauthorised; did you mean tls.rejectUnauthorized?'],
    [{ tls: { alpn: ['h2'] } }, 'Client: tls.alpn is what the client chooses itself'],
    [{ proxy: { url: 'http://proxy.test', no_proxy: '*' } }, 'Client: there is no option proxy.no_proxy; did you mean proxy.noProxy?'],
    [{ h2c: 1 }, 'h2c must be true or false'],
    [{ coalesce: 'true' }, 'coalesce must be true or false'],
    [{ http2: { pingIntervall: 3 } }, 'Client: there is no option http2.pingIntervall; did you mean http2.pingInterval?'],
    [{ http3: { idleTimeot: 3 } }, 'Client: there is no option http3.idleTimeot; did you mean http3.idleTimeout?'],
    [{ http3: { streamWindow: 0 } }, 'Client: http3.streamWindow must be a whole number of at least 1'],
    [{ protocols: ['h4'] as never }, "protocols must be a list of 'h3', 'h2' and 'h1', each once at most"],
    [{ protocols: ['h3', 'h3'] }, "protocols must be a list of 'h3', 'h2' and 'h1', each once at most"],
    [{ http2: { streamWindow: 0 } }, 'Client: http2.streamWindow must be a whole number from 1 to 2,147,483,647'],
    [{ http2: { maxWindow: Infinity } }, 'Client: http2.maxWindow must be a whole number from 1 to 2,147,483,647'],
    [null, 'Client: the options must be an object'],
  ]
  for (const [options, message] of refused) assert.equal(refusal(options), message)
})

test('options that are known and undefined are as absent', () => {
  assert.equal(refusal({ maxConnections: undefined, limits: { idleTimeout: undefined }, tls: { ca: undefined }, proxy: undefined }), '')
})

test('limits are those of HTTP/2 as well, unless http2 says otherwise', () => {
  const { engines } = new Settings({
    limits: { responseTimeout: 1000, bodyTimeout: 2000, receiveWindow: 3000, drainSize: 4000 },
    http2: { bodyTimeout: 5000 },
  })
  assert.deepEqual(engines.http1.limits, { responseTimeout: 1000, bodyTimeout: 2000, receiveWindow: 3000, drainSize: 4000 })
  assert.deepEqual(engines.http2.limits, { connectionWindow: 104_857_600, responseTimeout: 1000, bodyTimeout: 5000 })
})

test('authorities that are none do not stand for those of Node', async () => {
  assert.equal(refusal({ tls: { ca: '' } }), 'Client: tls cannot be used: ca is empty')
  assert.equal(refusal({ tls: { ca: Buffer.alloc(0) } }), 'Client: tls cannot be used: ca is empty')
  assert.equal(refusal({ tls: { ca: ['no certificate'] } }), 'Client: tls cannot be used: ca holds no certificate in PEM')
  assert.equal(refusal({ tls: { cert: 'client.crt', key: 'client.key' } }), 'Client: tls cannot be used: cert holds no certificate in PEM')
  const { createServer } = await import('node:net')
  const listener = createServer((socket) => socket.on('error', () => {}))
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const { port } = listener.address() as { port: number }
  const error = await new Promise<unknown>((resolve) => {
    const options: DialOptions = { clock: systemClock(), tls: { ca: '' } }
    dial({ host: '127.0.0.1', port }, options, resolve)
  })
  assert.match(String(error), /TLS with 127\.0\.0\.1 cannot be begun: dial: tls cannot be used: ca is empty/)
  listener.close()
})
