import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectationOf } from './expectation.ts'
import type { Fields } from './fields.ts'

test('100-continue is the one expectation that is known, in any case', () => {
  const rows: [Fields, string][] = [
    [[], 'none'],
    [['x-expect', 'all', 'expec', '100-continue'], 'none'],
    [['expect', ''], 'none'],
    [['expect', ' , '], 'none'],
    [['expect', '100-continue'], 'continue'],
    [['accept', '*/*', 'expect', '100-CONTINUE'], 'continue'],
    [['expect', '100-Continue , 100-continue,'], 'continue'],
    [['expect', '100-continue', 'expect', '100-continue'], 'continue'],
    [['expect', '100'], 'unknown'],
    [['expect', '200-ok'], 'unknown'],
    [['expect', '100-continued'], 'unknown'],
    [['expect', '100-continue;q=1'], 'unknown'],
    [['expect', '100-continue=1'], 'unknown'],
    [['expect', '"100-continue"'], 'unknown'],
    [['expect', '100-continue, meaning=42'], 'unknown'],
    [['expect', '100-continue', 'expect', 'more'], 'unknown'],
  ]
  for (const [fields, expected] of rows) assert.equal(expectationOf(fields), expected, JSON.stringify(fields))
})
