import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDuration, parseSize } from './units.ts'

test('durations are in ms', () => {
  const cases: readonly [string, number | undefined][] = [
    ['250ms', 250],
    ['10s', 10_000],
    ['10 s', 10_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['0s', 0],
    ['10', undefined],
    ['', undefined],
    ['s', undefined],
    ['-1s', undefined],
    ['1d', undefined],
    ['1S', undefined],
    ['1s ', undefined],
    ['1e3s', undefined],
    ['1 constructor', undefined],
    ['999999999999999h', undefined],
  ]
  for (const [text, expected] of cases) assert.equal(parseDuration(text), expected, text)
})

test('sizes are in bytes', () => {
  const cases: readonly [string, number | undefined][] = [
    ['512B', 512],
    ['64KiB', 65_536],
    ['64 KiB', 65_536],
    ['1.5MiB', 1_572_864],
    ['10MB', 10_000_000],
    ['2GiB', 2_147_483_648],
    ['0B', 0],
    ['64', undefined],
    ['64k', undefined],
    ['64KIB', undefined],
    ['1TiB', undefined],
  ]
  for (const [text, expected] of cases) assert.equal(parseSize(text), expected, text)
})
