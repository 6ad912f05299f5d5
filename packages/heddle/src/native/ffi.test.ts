import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { nativeLibrary, openLibrary, ownSurroundings, type Ffi, type Surroundings } from './ffi.ts'
import type { Unavailable } from './types.ts'
import { openSslIn } from './load.ts'
import { openssl, skip } from './tls-pair.test.ts'

/** Surroundings where all is well, but nothing is real. */
function surroundings(change: Partial<Surroundings>): Surroundings {
  return {
    versions: { node: '26.12.1', openssl: '3.5.9' },
    platform: 'linux',
    arch: 'x64',
    littleEndian: true,
    ffi: () => ({}) as Ffi,
    open: () => ({}) as ReturnType<Surroundings['open']>,
    ...change,
  }
}

function reasonIn(change: Partial<Surroundings>): string {
  return (openLibrary(surroundings(change)) as Unavailable).unavailable
}

describe('why native code is not to be had', () => {
  test('is said of Bun and Deno', () => {
    assert.equal(
      reasonIn({ versions: { node: '24.3.0', bun: '1.3.0' } }),
      'HTTP/3 needs Node ≥ 26.9; this is Bun 1.3.0, which has no node:ffi',
    )
    assert.match(reasonIn({ versions: { node: '24.3.0', deno: '2.5.0' } }), /^HTTP\/3 needs Node ≥ 26\.9; this is Deno 2\.5\.0/)
  })

  test('is said of a Node without node:ffi', () => {
    const ffi = (): undefined => undefined
    for (const node of ['22.18.0', '26.8.2', '24.20.0']) {
      assert.equal(
        reasonIn({ ffi, versions: { node } }),
        `HTTP/3 needs Node ≥ 26.9, whose node:ffi it calls OpenSSL with; this is Node ${node}`,
      )
    }
    for (const node of ['26.9.0', '27.0.0', '26.12.1']) assert.match(reasonIn({ ffi, versions: { node } }), /--no-experimental-ffi/)
  })

  test('is said where node:ffi cannot be loaded or opened', () => {
    const fails = (code: string) => () => {
      throw Object.assign(new Error('not here'), { code })
    }
    assert.match(reasonIn({ ffi: fails('ERR_X') }), /node:ffi cannot be loaded: not here/)
    assert.match(reasonIn({ open: fails('ERR_ACCESS_DENIED') }), /permission model forbids; start Node with --allow-ffi/)
    assert.match(reasonIn({ open: fails('ERR_X') }), /cannot open Node's own symbols: not here/)
  })

  test('is said of machines that are others', () => {
    for (const change of [{ arch: 'ia32' }, { arch: 's390x', littleEndian: false }, { arch: 'x64', littleEndian: false }]) {
      assert.match(reasonIn(change), /needs a 64-bit little-endian machine; this one is/)
    }
  })

  test('is said of an OpenSSL that is too old, or that is none', () => {
    const open = (): ReturnType<Surroundings['open']> =>
      ({
        getSymbol: () => {
          throw new Error('no symbol')
        },
      }) as unknown as ReturnType<Surroundings['open']>
    const reason = (versions: Surroundings['versions']): string => (openSslIn(surroundings({ open, versions })) as Unavailable).unavailable
    assert.equal(reason({ node: '26.12.1', openssl: '3.0.17' }), 'HTTP/3 needs OpenSSL ≥ 3.5; this Node has OpenSSL 3.0.17')
    assert.equal(reason({ node: '26.12.1' }), 'HTTP/3 needs OpenSSL ≥ 3.5; this Node has none')
  })

  test('is said where OpenSSL lacks another function', () => {
    const open = (): ReturnType<Surroundings['open']> =>
      ({
        getSymbol: () => 1n,
        getFunctions: () => {
          throw new Error('no SSL_want')
        },
      }) as unknown as ReturnType<Surroundings['open']>
    assert.match((openSslIn(surroundings({ open })) as Unavailable).unavailable, /cannot use this Node's OpenSSL 3\.5\.9: no SSL_want/)
  })
})

/** Runs a program that loads all of it, and gives what it prints. */
function run(program: string, ...flags: string[]): { stdout: string; stderr: string; status: number | null } {
  const load = JSON.stringify(new URL('load.ts', import.meta.url).href)
  const source = `import { loadOpenSsl } from ${load}; ${program}`
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--conditions=@heddle/source', ...flags, '--input-type=module-typescript', '-e', source],
    { encoding: 'utf8', timeout: 30_000, env: { ...process.env, NODE_OPTIONS: '', NODE_NO_WARNINGS: '' } },
  )
  return { stdout, stderr, status }
}

const tell = "const found = loadOpenSsl(); console.log('unavailable' in found ? found.unavailable : 'there')"

describe('in a process of its own', { skip }, () => {
  test('it is there, and nobody is warned of node:ffi', () => {
    assert.deepEqual(run(tell), { stdout: 'there\n', stderr: '', status: 0 })
  })

  test('it is there where deprecations throw and warnings are traced', () => {
    assert.deepEqual(run(tell, '--throw-deprecation', '--trace-warnings'), { stdout: 'there\n', stderr: '', status: 0 })
  })

  test('warnings of others are as they were', () => {
    const { stderr, status } = run(
      `const { emitWarning } = process; process.emitWarning('before'); loadOpenSsl(); process.emitWarning('after')
       if (process.emitWarning !== emitWarning) process.exit(3)`,
    )
    assert.equal(status, 0)
    assert.match(stderr, /Warning: before[^]*Warning: after/)
    assert.doesNotMatch(stderr, /Experimental/)
  })

  test('the permission model needs --allow-ffi', () => {
    const { stdout, status } = run(tell, '--permission', '--allow-fs-read=*')
    assert.equal(status, 0)
    assert.match(stdout, /--allow-ffi/)
    assert.equal(run(tell, '--permission', '--allow-fs-read=*', '--allow-ffi').stdout, 'there\n')
  })

  test('--no-experimental-ffi is named', () => {
    assert.match(run(tell, '--no-experimental-ffi').stdout, /started with --no-experimental-ffi/)
  })

  test('a session that nobody closed does not keep the process, nor break its end', () => {
    const pair = JSON.stringify(new URL('tls-pair.test.ts', import.meta.url).href)
    for (const end of [
      '',
      'process.exit(0)',
      'pair.client.during = () => process.exit(0); pair.server.during = () => process.exit(0); pair.run()',
    ]) {
      const { stdout, status, stderr } = run(
        `const { Pair } = await import(${pair}); const pair = new Pair(); ${end === '' ? 'pair.run();' : ''} ${end}; console.log(pair.complete)`,
      )
      assert.equal(status, 0, stderr)
      assert.equal(stdout, end === '' ? 'true\n' : '')
    }
  })
})

test('a collection of garbage at every step takes nothing that OpenSSL still reads', { skip }, () => {
  const pair = JSON.stringify(new URL('tls-pair.test.ts', import.meta.url).href)
  const { stdout, stderr, status } = run(
    `const { Pair, clientContext, serverContext } = await import(${pair})
     const { createHash } = await import('node:crypto')
     const parameters = (text) => createHash('sha512').update(text).digest()
     const litter = () => { gc(); for (let i = 0; i < 200; i++) new Uint8Array(new ArrayBuffer(300)).fill(0xff) }
     const lists = { clientContext: clientContext(), serverContext: serverContext({ earlyData: true }) }
     let ticket
     for (let i = 0; i < 4; i++) {
       const pair = new Pair({ ...lists, session: { transportParameters: parameters('client'), ticket, earlyData: true }, serverSession: { transportParameters: parameters('server') } })
       pair.pieceSize = 150
       pair.client.during = pair.server.during = litter
       litter()
       pair.run()
       if (!pair.complete || !pair.client.parameters.equals(parameters('server')) || !pair.server.parameters.equals(parameters('client'))) process.exit(2)
       ticket = pair.client.tickets[0]
       console.log(pair.server.open.earlyData)
       pair.close()
     }`,
    '--expose-gc',
  )
  assert.deepEqual({ stdout, status }, { stdout: 'none\naccepted\naccepted\naccepted\n', status: 0 }, stderr)
})

test('it is found out once a thread', { skip }, () => {
  assert.equal(nativeLibrary(), nativeLibrary())
  assert.ok('ffi' in openLibrary(ownSurroundings()))
  assert.ok(openssl().text(openssl().f.X509_verify_cert_error_string(0n)) === 'ok')
})
