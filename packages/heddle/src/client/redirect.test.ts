import assert from 'node:assert/strict'
import { test } from 'node:test'
import { responseHead } from '../http/index.ts'
import { isRedirect, redirectFields, redirectLocation, redirectMethod } from './redirect.ts'

test('five statuses send a client elsewhere', () => {
  const found: number[] = []
  for (let status = 100; status < 600; status++) if (isRedirect(status)) found.push(status)
  assert.deepEqual(found, [301, 302, 303, 307, 308])
})

test('the method of the next hop', () => {
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'QUERY']
  const next = (status: number): string => methods.map((method) => redirectMethod(status, method)).join(' ')
  assert.equal(next(301), 'GET HEAD GET PUT DELETE QUERY')
  assert.equal(next(302), 'GET HEAD GET PUT DELETE QUERY')
  assert.equal(next(303), 'GET HEAD GET GET GET GET')
  assert.equal(next(307), 'GET HEAD POST PUT DELETE QUERY')
  assert.equal(next(308), 'GET HEAD POST PUT DELETE QUERY')
})

test('credentials stay with their origin, and fields that tell of content go with it', () => {
  const fields = [
    'authorization',
    'a',
    'cookie',
    'b',
    'host',
    'h',
    'proxy-authorization',
    'c',
    'content-type',
    'd',
    'content-language',
    'e',
    'x-own',
    'f',
  ]
  assert.equal(redirectFields(fields, false, false), fields)
  assert.deepEqual(redirectFields(fields, false, true), ['content-type', 'd', 'content-language', 'e', 'x-own', 'f'])
  assert.deepEqual(redirectFields(fields, true, false), [
    'authorization',
    'a',
    'cookie',
    'b',
    'host',
    'h',
    'proxy-authorization',
    'c',
    'x-own',
    'f',
  ])
  assert.deepEqual(redirectFields(fields, true, true), ['x-own', 'f'])
})

test('location may hold UTF-8', () => {
  assert.equal(redirectLocation(responseHead(302)), undefined)
  assert.equal(redirectLocation(responseHead(302, ['location', '/plain'])), '/plain')
  assert.equal(redirectLocation(responseHead(302, ['location', Buffer.from('/ü').toString('latin1')])), '/ü')
})
