import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { countInWords, durationInWords, parseDuration, parseSize, rateInWords, shareInWords, sizeInWords } from './units.ts'

test('durations have a unit', () => {
  const known: Record<string, number> = { '500us': 0.5, '20ms': 20, '1.5s': 1_500, '2m': 120_000, '1h': 3_600_000, '0s': 0, '3 s': 3_000 }
  for (const [text, ms] of Object.entries(known)) equal(parseDuration(text), ms, text)
  for (const text of ['', '10', 's', '-1s', '1d', '1e3s', '1.s', '9999999999999999s', 'constructors'])
    equal(parseDuration(text), undefined, text)
})

test('sizes too', () => {
  const known: Record<string, number> = { '0B': 0, '512B': 512, '1kB': 1_000, '64KiB': 65_536, '1.5MiB': 1_572_864 }
  for (const [text, bytes] of Object.entries(known)) equal(parseSize(text), bytes, text)
  for (const text of ['', '512', 'B', '1kb', '-1B', '1 TB']) equal(parseSize(text), undefined, text)
})

test('for people', () => {
  deepEqual([0, 0.085, 0.9996, 1, 12.345, 123.4, 999.4, 999.6, 61_000].map(durationInWords), [
    '0 µs',
    '85 µs',
    '1000 µs',
    '1 ms',
    '12.3 ms',
    '123 ms',
    '999 ms',
    '1 s',
    '61 s',
  ])
  deepEqual([0, 1_023, 1_536, 2 ** 20, 5e13].map(sizeInWords), ['0 B', '1023 B', '1.5 KiB', '1 MiB', '45.5 TiB'])
  deepEqual([0, 1_234_567.8].map(countInWords), ['0', '1,234,568'])
  deepEqual([0.123456, 99.4, 12_345.6].map(rateInWords), ['0.123', '99.4', '12,346'])
  deepEqual([0, 0.001, 0.123456, 1, 0.00004321].map(shareInWords), ['0%', '0.1%', '12.3%', '100%', '0.0043%'])
})
