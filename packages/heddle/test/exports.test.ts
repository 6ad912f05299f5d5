import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as client from 'heddle/client'
import * as main from 'heddle'
import * as server from 'heddle/server'

test('limits can be had where they are options', () => {
  // What a program writes to raise one of them, from each door.
  const limits: Partial<main.Http1Limits & client.Http1Limits & server.Http1Limits> = { idleTimeout: main.serverLimits.idleTimeout * 2 }
  assert.deepEqual(limits, { idleTimeout: 120_000 })
  assert.equal(main.serverLimits, server.serverLimits)
  assert.equal(main.clientLimits, client.clientLimits)
  assert.equal(main.clientLimits.idleTimeout, 4_000)
})
