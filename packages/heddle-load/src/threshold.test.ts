import { deepEqual, equal, throws } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { judge, parseThreshold, type Measured } from './threshold.ts'

const measured: Measured = {
  duration: (metric) => ({ p99: 20, 'p99.9': undefined, max: 500, mean: 3, 'service.p50': 1.5 })[metric],
  count: (metric) => ({ errors: 10, dropped: 0, 'status.5xx': 7, 'status.404': 3 })[metric] ?? 0,
  due: 1_000,
  perSecond: 5_000,
}

describe('a threshold', () => {
  const rules: readonly [string, boolean, string][] = [
    ['p99>20ms', false, 'p99 is 20 ms'],
    ['p99>=20ms', true, 'p99 is 20 ms'],
    ['p99 > 19.9ms', true, 'p99 is 20 ms'],
    ['p99<1s', true, 'p99 is 20 ms'],
    ['p99.9>1h', true, 'p99.9 is not known: too many requests had no answer'],
    ['p99.9<=1h', false, 'p99.9 is not known: too many requests had no answer'],
    ['max>0.5s', false, 'max is 500 ms'],
    ['mean>=3ms', true, 'mean is 3 ms'],
    ['service.p50>1ms', true, 'service.p50 is 1.5 ms'],
    ['errors>0', true, 'errors is 10'],
    ['errors>1%', false, 'errors is 1%'],
    ['errors>0.99%', true, 'errors is 1%'],
    ['dropped>0', false, 'dropped is 0'],
    ['status.5xx>0', true, 'status.5xx is 7'],
    ['status.404>=0.3%', true, 'status.404 is 0.3%'],
    ['rps<5000', false, 'rps is 5,000/s'],
    ['rps<=5k', true, 'rps is 5,000/s'],
  ]
  for (const [text, failed, reason] of rules) {
    test(`${text}: ${failed ? 'fails' : 'passes'}`, () => {
      const result = judge(parseThreshold(text), measured)
      deepEqual([result.threshold, result.failed, result.reason], [text, failed, reason])
    })
  }

  test('of no requests, no share is exceeded', () => {
    equal(judge(parseThreshold('errors>0%'), { ...measured, due: 0, count: () => 0 }).failed, false)
  })

  test('says what was measured in its own unit, and null where that is not known', () => {
    const values = ['p99>1s', 'p99.9>1s', 'errors>5', 'errors>5%', 'rps<1'].map((text) => judge(parseThreshold(text), measured).measured)
    deepEqual(values, [20, null, 10, 0.01, 5_000])
  })
})

describe('what is no threshold is told so', () => {
  const faults: readonly [string, RegExp][] = [
    ['', /^--fail-if: expected a threshold such as 'p99>20ms'.*, found ""$/],
    ['p99', /^--fail-if: expected a threshold such as/],
    ['p99=20ms', /^--fail-if: expected a threshold such as/],
    ['p99>20ms>1', /^--fail-if: expected a threshold such as/],
    ['p99>20', /^--fail-if: p99: expected a duration such as 20ms or 1\.5s, found "20"$/],
    ['p99>20%', /^--fail-if: p99: expected a duration/],
    ['max>fast', /^--fail-if: expected a threshold such as/],
    ['p0>1ms', /^--fail-if: p0 is no percentile/],
    ['p00.0>1ms', /^--fail-if: p00\.0 is no percentile/],
    ['p100>1ms', /^--fail-if: there is no "p100" to compare; there are p50 \(any percentile\), max/],
    ['speed>1', /^--fail-if: there is no "speed" to compare/],
    ['rps<5000ms', /^--fail-if: rps: expected a number of requests per second such as 5000 or 5k, found "5000ms"$/],
    ['rps<1.2.3', /^--fail-if: rps: expected a number/],
    ['errors>0.5', /^--fail-if: errors: expected a whole number, or a share such as 0\.1%, found "0\.5"$/],
    ['errors>101%', /^--fail-if: errors: expected a whole number, or a share/],
    ['errors>1ms', /^--fail-if: errors: expected a whole number, or a share/],
    ['status.6xx>0', /^--fail-if: there is no "status\.6xx"/],
  ]
  for (const [text, message] of faults) {
    test(JSON.stringify(text), () => throws(() => parseThreshold(text, '--fail-if'), { code: 'USAGE', message }))
  }
})
