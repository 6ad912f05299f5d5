import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import * as tls from 'node:tls'
import { UsageError } from '../http/index.ts'
import { makeAuthority, makeCertificate, type Certificate } from '../testing/index.ts'
import { Response, serve, type Server, type TlsIdentity, type TlsServerOptions } from './index.ts'

const quick = { timeout: 20_000 }
const authority = makeAuthority('the server’s')
const members = makeAuthority('members')
const guests = makeAuthority('guests')
const main = makeCertificate({ names: ['main.test'], ca: authority })
const other = makeCertificate({ names: ['other.test'], ca: authority })
const ada = makeCertificate({ names: ['ada'], ca: members })
const guest = makeCertificate({ names: ['guest'], ca: guests })
/** Of an authority that the process trusts, as it does the public ones. */
const foreign = makeAuthority('a public authority')
const stranger = makeCertificate({ names: ['stranger'], ca: foreign })
const { setDefaultCACertificates } = tls as { setDefaultCACertificates?: (certificates: string[]) => void }
setDefaultCACertificates?.([foreign.cert])
const withDefaults = { ...quick, skip: setDefaultCACertificates === undefined ? 'this Node cannot change its authorities' : false }

interface Answer {
  /** What the handler answered; '' when the handshake failed. */
  text: string
  status: number
  reused: boolean
  session: Buffer | undefined
}

function ask(
  server: Server,
  servername: string,
  client?: Certificate,
  session?: Buffer,
  port = server.port,
  host = servername === '' ? '127.0.0.1' : servername,
): Promise<Answer> {
  const answer: Answer = { text: '', status: 0, reused: false, session: undefined }
  const socket = tls.connect({
    host: '127.0.0.1',
    port,
    ca: authority.cert,
    servername,
    checkServerIdentity: () => undefined,
    ...(client === undefined ? {} : { cert: client.cert, key: client.key }),
    ...(session === undefined ? {} : { session }),
  })
  socket.on('session', (made) => (answer.session = made))
  socket.on('secureConnect', () => (answer.reused = socket.isSessionReused()))
  socket.on('data', (chunk) => (answer.text += String(chunk)))
  socket.on('error', () => {})
  socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
  return new Promise((resolve) =>
    socket.on('close', () => {
      answer.status = Number(answer.text.split(' ')[1] ?? 0)
      answer.text = answer.text.split('\r\n\r\n')[1] ?? ''
      resolve(answer)
    }),
  )
}

/** Serves with client certificates asked for; the handler tells whom it took the client for. */
async function withServer(options: TlsServerOptions, use: (server: Server) => Promise<void>): Promise<void> {
  const server = await serve({
    hostname: '127.0.0.1',
    tls: { cert: main.cert, key: main.key, requestCert: true, ...options },
    fetch: (_request, { tls }) => {
      const certificate = tls?.peerCertificate
      return new Response(`${tls?.authorized} ${certificate === undefined ? 'nobody' : new X509Certificate(certificate).subject}`)
    },
    onError: () => {},
  })
  try {
    await use(server)
  } finally {
    await server.close({ deadline: 1000 })
  }
}

async function asks(server: Server, servername: string, client?: Certificate): Promise<string> {
  return (await ask(server, servername, client)).text
}

test('client certificates are asked for, checked and told', quick, () =>
  withServer({ ca: members.cert }, async (server) => {
    assert.equal(await asks(server, 'main.test', ada), 'true CN=ada')
    assert.equal(await asks(server, 'main.test'), '')
    assert.equal(await asks(server, 'main.test', guest), '')
    assert.equal(server.stats().requests, 1)
    assert.ok(server.stats().handshakesFailed >= 2)
  }),
)

const byName: [string, (identity: TlsIdentity) => TlsServerOptions][] = [
  ['names', (identity) => ({ names: { 'other.test': identity, '*.wild.test': identity } })],
  ['sniCallback', (identity) => ({ sniCallback: () => identity })],
  ['an async sniCallback', (identity) => ({ sniCallback: async () => identity })],
]
for (const [how, options] of byName) {
  test(`an identity from ${how} trusts whom the server trusts, not whom Node does`, withDefaults, () =>
    withServer({ ca: members.cert, ...options({ cert: other.cert, key: other.key }) }, async (server) => {
      for (const name of ['main.test', 'other.test', 'a.wild.test', '']) {
        assert.equal(await asks(server, name, stranger), '', `a stranger at ${name}`)
        assert.equal(await asks(server, name), '', `nobody at ${name}`)
        assert.equal(await asks(server, name, ada), 'true CN=ada', `a member at ${name}`)
      }
    }),
  )

  test(`an identity from ${how} may have authorities of its own, and no other certificate`, quick, () =>
    withServer({ ca: members.cert, ...options({ ca: guests.cert }) }, async (server) => {
      assert.equal(await asks(server, 'other.test', guest), 'true CN=guest')
      assert.equal(await asks(server, 'other.test', ada), '')
    }),
  )

  test(`without rejectUnauthorized, ${how} authorizes nobody on Node's word`, withDefaults, () =>
    withServer({ ca: members.cert, rejectUnauthorized: false, ...options({ cert: other.cert, key: other.key }) }, async (server) => {
      assert.equal(await asks(server, 'other.test', stranger), 'false CN=stranger')
      assert.equal(await asks(server, 'other.test', ada), 'true CN=ada')
    }),
  )
}

test('a certificate checked under one name opens no other that has authorities of its own', quick, () =>
  withServer({ ca: members.cert, names: { 'other.test': { ca: guests.cert }, 'same.test': { ca: members.cert } } }, async (server) => {
    const status = async (name: string, client: Certificate, host: string): Promise<number> =>
      (await ask(server, name, client, undefined, server.port, host)).status
    assert.equal(await status('other.test', guest, 'other.test'), 200)
    assert.equal(await status('other.test', guest, 'OTHER.test:443'), 200)
    for (const host of ['main.test', 'any.test', 'same.test', '127.0.0.1', '[::1]:443']) {
      assert.equal(await status('other.test', guest, host), 421, `a guest at ${host}`)
      assert.equal(await status('main.test', ada, host), 200, `a member at ${host}`)
    }
    assert.equal(await status('main.test', ada, 'other.test'), 421)
    assert.equal(await status('', ada, 'other.test'), 421)
  }),
)

test('with sniCallback a certificate is for the name it was checked under', quick, () =>
  withServer({ ca: members.cert, sniCallback: (name) => (name === 'other.test' ? { ca: guests.cert } : undefined) }, async (server) => {
    const status = async (name: string, client: Certificate, host: string): Promise<number> =>
      (await ask(server, name, client, undefined, server.port, host)).status
    assert.equal(await status('other.test', guest, 'other.test'), 200)
    assert.equal(await status('other.test', guest, 'main.test'), 421)
    assert.equal(await status('main.test', ada, 'other.test'), 421)
    assert.equal(await status('', ada, '127.0.0.1'), 200)
    assert.equal(await status('', ada, 'other.test'), 421)
  }),
)

test('versions and ciphers are the same for all names', quick, async () => {
  const { cert, key } = main
  for (const given of [{ minVersion: 'TLSv1.3' }, { maxVersion: 'TLSv1.2' }, { ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' }] as const) {
    await assert.rejects(
      serve({ tls: { cert, key, names: { 'a.test': given } }, fetch: () => new Response() }),
      /is the same for all names/,
    )
  }
  await withServer({ ca: members.cert, maxVersion: 'TLSv1.2', names: { 'other.test': { maxVersion: 'TLSv1.2' } } }, async (server) => {
    const socket = tls.connect({
      host: '127.0.0.1',
      port: server.port,
      servername: 'other.test',
      minVersion: 'TLSv1.3',
      ca: authority.cert,
    })
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => socket.on('error', resolve))
    assert.equal(error.code, 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')
  })
})

test('requestCert without authorities is refused, and so are empty ones', quick, async () => {
  const { cert, key } = main
  const refused: [TlsServerOptions, RegExp][] = [
    [{ cert, key, requestCert: true }, /requestCert needs ca/],
    [{ cert, key, requestCert: true, rejectUnauthorized: false }, /requestCert needs ca/],
    [{ cert, key, requestCert: true, names: { 'a.test': { ca: members.cert } } }, /the TLS identity cannot be used: requestCert needs ca/],
    [{ cert, key, requestCert: true, ca: '' }, /ca is empty/],
    [{ cert, key, requestCert: true, ca: [members.cert, ''] }, /ca is empty/],
    [{ cert, key, requestCert: true, ca: Buffer.alloc(0) }, /ca is empty/],
    [{ cert, key, requestCert: true, ca: null as never }, /requestCert needs ca/],
    [{ cert, key, requestCert: true, ca: 'members.pem' }, /ca holds no certificate/],
    [
      { cert, key, requestCert: true, ca: members.cert, names: { 'a.test': { ca: '' } } },
      /the identity of a\.test cannot be used: ca is empty/,
    ],
  ]
  for (const [options, message] of refused) {
    await assert.rejects(serve({ tls: options, fetch: () => new Response() }), (error) => {
      assert.ok(error instanceof UsageError)
      assert.match(error.message, message)
      return true
    })
  }
})

test('an identity from sniCallback without authorities fails its handshake', quick, async () => {
  const told: unknown[] = []
  const server = await serve({
    hostname: '127.0.0.1',
    tls: { cert: main.cert, key: main.key, ca: members.cert, requestCert: true, sniCallback: () => ({ ca: '' }) },
    fetch: () => new Response('served'),
    onError: (error) => void told.push((error as Error).message),
  })
  try {
    assert.equal(await asks(server, 'other.test', ada), '')
    assert.match(String(told[0]), /the identity of other\.test cannot be used: ca is empty/)
  } finally {
    await server.close({ deadline: 1000 })
  }
})

test('an empty list of authorities trusts nobody, and leaves the judgement to the program', withDefaults, () =>
  withServer({ ca: [], rejectUnauthorized: false }, async (server) => {
    assert.equal(await asks(server, 'main.test', stranger), 'false CN=stranger')
    assert.equal(await asks(server, 'main.test', ada), 'false CN=ada')
  }),
)

test('a new certificate keeps the authorities and the names', withDefaults, () =>
  withServer({ ca: members.cert, names: { 'other.test': { cert: other.cert, key: other.key } } }, async (server) => {
    const renewed = makeCertificate({ names: ['renewed.test'], ca: authority })
    server.updateTls({ cert: renewed.cert, key: renewed.key })
    for (const [name, subject] of [
      ['main.test', 'renewed.test'],
      ['other.test', 'other.test'],
    ] as const) {
      assert.equal(await asks(server, name, stranger), '')
      assert.equal(await asks(server, name, ada), 'true CN=ada')
      assert.equal(await certificateAt(server, name), `CN=${subject}`)
    }
    // What is given replaces: the names as a whole, authorities too.
    server.updateTls({ names: { 'third.test': { cert: main.cert, key: main.key } }, ca: guests.cert })
    assert.equal(await certificateAt(server, 'other.test'), 'CN=renewed.test')
    assert.equal(await certificateAt(server, 'third.test'), 'CN=main.test')
    for (const name of ['main.test', 'third.test']) {
      assert.equal(await asks(server, name, ada), '')
      assert.equal(await asks(server, name, guest), 'true CN=guest')
    }
    // What cannot be used changes nothing.
    assert.throws(() => server.updateTls({ cert: main.cert, key: other.key, ca: members.cert }), UsageError)
    assert.throws(() => server.updateTls({ ca: '' }), UsageError)
    assert.throws(() => server.updateTls({ nams: {} } as never), /did you mean names\?/)
    assert.throws(() => server.updateTls({ requestCert: false }), /cannot be changed/)
    assert.equal(await asks(server, 'main.test', guest), 'true CN=guest')
    server.updateTls({})
    assert.equal(await asks(server, 'main.test', ada), '')
    assert.equal(await certificateAt(server, 'main.test'), 'CN=renewed.test')
  }),
)

test('a renewed certificate of the same key needs no key, and one pair takes the place of a PKCS #12 file', quick, async () => {
  const server = await serve({ hostname: '127.0.0.1', tls: { cert: main.cert, key: main.key }, fetch: () => new Response() })
  try {
    assert.throws(() => server.updateTls({ cert: other.cert }), UsageError)
    server.updateTls({ cert: main.cert, ca: undefined })
    assert.equal(await certificateAt(server, 'main.test'), 'CN=main.test')
    server.updateTls({ cert: other.cert, key: other.key })
    assert.equal(await certificateAt(server, 'main.test'), 'CN=other.test')
  } finally {
    await server.close({ deadline: 1000 })
  }
})

test('an update keeps what ALPN chooses from', quick, async () => {
  for (const [options, chosen] of [
    [{ alpn: ['http/1.1'] }, 'http/1.1'],
    [{}, 'h2'],
  ] as const) {
    const server = await serve({ hostname: '127.0.0.1', tls: { cert: main.cert, key: main.key, ...options }, fetch: () => new Response() })
    try {
      const protocol = async (): Promise<unknown> => {
        const socket = tls.connect({ host: '127.0.0.1', port: server.port, ALPNProtocols: ['h2', 'http/1.1'], rejectUnauthorized: false })
        await new Promise((resolve) => socket.on('secureConnect', resolve))
        socket.on('error', () => {}).destroy()
        return socket.alpnProtocol
      }
      assert.equal(await protocol(), chosen)
      server.updateTls({ cert: other.cert, key: other.key })
      assert.equal(await protocol(), chosen)
    } finally {
      await server.close({ deadline: 1000 })
    }
  }
})

test('a session resumes across workers and renewals, but not for whom nobody trusts any more', quick, async () => {
  const ticketKeys = Buffer.alloc(48, 7)
  await withServer({ ca: members.cert, ticketKeys, names: { 'other.test': { ca: guests.cert } } }, async (server) => {
    const first = await ask(server, 'main.test', ada)
    const at = (name: string): Promise<Answer> => ask(server, name, ada, first.session)
    assert.deepEqual([(await at('main.test')).reused, (await at('main.test')).text], [true, 'true CN=ada'])
    // A session is good for the name it was made for.
    assert.equal((await at('other.test')).text, '')
    const renewed = makeCertificate({ names: ['main.test'], ca: authority })
    server.updateTls({ cert: renewed.cert, key: renewed.key })
    assert.equal((await at('main.test')).reused, true)
    server.updateTls({ ca: guests.cert })
    assert.deepEqual([(await at('main.test')).reused, (await at('main.test')).text], [false, ''])
  })
})

test('with sniCallback and client certificates no session is resumed', quick, () =>
  withServer({ ca: members.cert, ticketKeys: Buffer.alloc(48, 7), sniCallback: () => undefined }, async (server) => {
    const first = await ask(server, 'main.test', ada)
    const second = await ask(server, 'main.test', ada, first.session)
    assert.deepEqual([second.reused, second.text], [false, 'true CN=ada'])
  }),
)

test('a server without any certificate is refused, and so is half of one', quick, async () => {
  const refused: [TlsServerOptions, RegExp][] = [
    [{}, /tls needs a certificate: cert and key, or pfx/],
    [{ ca: members.cert, names: {} }, /tls needs a certificate/],
    [{ cert: main.cert }, /a certificate without a key/],
    [{ key: main.key }, /a key without a certificate/],
    [{ cert: '', key: main.key }, /cert is empty/],
    [{ cert: 'main.crt', key: main.key }, /the TLS identity cannot be used: cert holds no certificate in PEM/],
    [{ cert: main.key, key: main.cert }, /the TLS identity cannot be used: cert holds no certificate in PEM/],
    [{ cert: main.cert, key: Buffer.from('main.key') }, /the TLS identity cannot be used: key holds no private key in PEM/],
    [{ cert: main.cert, key: [{ pem: main.key }] } as never, /the TLS identity cannot be used: key holds no private key in PEM/],
    [{ names: { 'a.test': { cert: main.cert, key: 'a.key' } } }, /the identity of a\.test cannot be used: key holds no private key in PEM/],
    [{ names: { 'a.test': {} } }, /the identity of a\.test has no certificate/],
    [{ cert: main.cert, key: main.key, ticketKeys: Buffer.alloc(3) }, /the TLS options cannot be used/],
    [{ cert: main.cert, key: main.key, requsetCert: true } as never, /there is no option requsetCert; did you mean requestCert\?/],
    [{ cert: main.cert, key: main.key, names: { 'a.test': { crt: '' } } } as never, /there is no option names\.a\.test\.crt; did you mean/],
  ]
  for (const [options, message] of refused) {
    await assert.rejects(serve({ tls: options, fetch: () => new Response() }), (error) => {
      assert.ok(error instanceof UsageError, String(error))
      assert.match(error.message, message)
      return true
    })
  }
  const named = await serve({ hostname: '127.0.0.1', tls: { names: { 'other.test': other } }, fetch: () => new Response('served') })
  try {
    assert.equal(await asks(named, 'other.test'), 'served')
    assert.equal(await asks(named, 'main.test'), '')
  } finally {
    await named.close({ deadline: 1000 })
  }
})

async function certificateAt(server: Server, servername: string): Promise<string> {
  const socket = tls.connect({ host: '127.0.0.1', port: server.port, servername, rejectUnauthorized: false })
  socket.on('error', () => {})
  const subject = await new Promise<string>((resolve) =>
    socket.on('secureConnect', () => resolve(socket.getPeerX509Certificate()!.subject)),
  )
  socket.destroy()
  return subject
}
