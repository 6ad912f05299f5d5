import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from './errors.ts'
import { checkLimits, checkOptionNames } from './option-names.ts'

const known = { maxConnections: true, maxConnectionsPerOrigin: true, hostname: true, port: true, headTimeout: true }

function refusal(path: string, options: unknown): string {
  try {
    checkOptionNames('serve', path, options, known)
  } catch (error) {
    assert.ok(error instanceof UsageError)
    return error.message
  }
  return ''
}

test('known options pass, whatever their values', () => {
  assert.equal(refusal('', { port: 1, hostname: undefined }), '')
  assert.equal(refusal('', {}), '')
})

test('an unknown option is named, with what was probably meant', () => {
  for (const [name, meant] of [
    ['maxConections', 'maxConnections'],
    ['maxConnectionPerOrigin', 'maxConnectionsPerOrigin'],
    ['maxConnectionsPerOrigins', 'maxConnectionsPerOrigin'],
    ['prt', 'port'],
    ['prot', 'port'],
    ['PORT', 'port'],
    ['host', 'hostname'],
    ['headTimout', 'headTimeout'],
  ]) {
    assert.equal(refusal('', { [name as string]: 1 }), `serve: there is no option ${name}; did you mean ${meant}?`)
  }
  assert.equal(refusal('limits', { headTimout: 1 }), 'serve: there is no option limits.headTimout; did you mean limits.headTimeout?')
})

test('what is near to nothing gets no advice', () => {
  assert.equal(refusal('', { colour: 1 }), 'serve: there is no option colour')
  assert.equal(refusal('', { toString: 1 }), 'serve: there is no option toString')
})

test('what is no object is refused', () => {
  for (const options of [null, undefined, 'port', 8080, [{}]]) assert.equal(refusal('', options), 'serve: the options must be an object')
  assert.equal(refusal('tls', true), 'serve: tls must be an object')
})

test('limits are numbers from 0 on; undefined is not given', () => {
  const limits = { headTimeout: 1, idleTimeout: 2 }
  assert.deepEqual(checkLimits('serve', 'limits', { headTimeout: 0, idleTimeout: undefined as never }, limits), { headTimeout: 0 })
  for (const value of [-1, NaN, '1', null]) {
    assert.throws(() => checkLimits('serve', 'limits', { headTimeout: value as never }, limits), {
      message: 'serve: limits.headTimeout must be a number, 0 or more',
    })
  }
  assert.throws(() => checkLimits('serve', 'limits', { idleTimout: 1 } as never, limits), /did you mean limits\.idleTimeout\?/)
})
