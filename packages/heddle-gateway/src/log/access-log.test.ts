import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import type { RequestRecord } from '../record.ts'
import { AccessLog, formatLine } from './index.ts'

const record: RequestRecord = {
  startedAt: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
  listener: 'web',
  route: 'api',
  cluster: 'app',
  endpoint: '10.0.0.1:80',
  remoteAddress: '192.0.2.1',
  protocol: 'h1',
  upstreamProtocol: 'h1',
  method: 'GET',
  authority: 'example.org',
  path: '/a?b',
  status: 200,
  reason: '',
  attempts: 1,
  requestSize: 0,
  responseSize: 12,
  duration: 1.23456,
  timeToHead: 1,
  upstreamLatency: -1,
  upstreamDuration: -1,
  tunnel: false,
  grpc: undefined,
  grpcStatus: -1,
}

describe('a line', () => {
  test('has what happened', () => {
    assert.equal(
      formatLine(record),
      '{"time":"2026-01-02T03:04:05.006Z","listener":"web","route":"api","cluster":"app","endpoint":"10.0.0.1:80","remote":"192.0.2.1","protocol":"h1","upstreamProtocol":"h1","method":"GET","authority":"example.org","path":"/a?b","status":200,"attempts":1,"requestSize":0,"responseSize":12,"duration":1.235,"timeToHead":1}\n',
    )
  })

  test('has the status of a gRPC call', () => {
    const line = formatLine({ ...record, grpc: { service: 'a.B', method: 'C' }, grpcStatus: 14 })
    assert.equal((JSON.parse(line) as RequestRecord).grpcStatus, 14)
  })

  test('leaves out what there is not', () => {
    const line = formatLine({
      ...record,
      route: '',
      cluster: '',
      endpoint: '',
      upstreamProtocol: '',
      timeToHead: -1,
      status: 404,
      reason: 'no_route',
      tunnel: true,
    })
    assert.deepEqual(Object.keys(JSON.parse(line) as object), [
      'time',
      'listener',
      'remote',
      'protocol',
      'method',
      'authority',
      'path',
      'status',
      'reason',
      'attempts',
      'requestSize',
      'responseSize',
      'duration',
      'tunnel',
    ])
  })

  test('is one line of ASCII that gives every octet back', () => {
    const octets = fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)), maxLength: 20 })
    fc.assert(
      fc.property(octets, octets, (path, authority) => {
        const line = formatLine({ ...record, path, authority })
        assert.match(line, /^[\x20-\x7e]+\n$/)
        const parsed = JSON.parse(line) as RequestRecord
        assert.equal(parsed.path, path)
        assert.equal(parsed.authority, authority)
      }),
    )
  })
})

describe('the access log', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'heddle-log-'))
  })
  after(() => rmSync(folder, { recursive: true }))

  function lines(path: string): number {
    return readFileSync(path, 'latin1').split('\n').length - 1
  }

  test('has every line after close', async () => {
    const path = join(folder, 'close.log')
    const log = new AccessLog(path)
    for (let i = 0; i < 10; i++) log.write(record)
    await log.close()
    assert.equal(lines(path), 10)
    assert.deepEqual(log.stats(), { lines: 10, dropped: 0, failures: 0 })
  })

  test('writes in large pieces, in order', async () => {
    const path = join(folder, 'order.log')
    const log = new AccessLog(path, { flushSize: 1_000 })
    for (let i = 0; i < 1_000; i++) log.write({ ...record, requestSize: i })
    await log.close()
    const sizes = readFileSync(path, 'latin1')
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as RequestRecord).requestSize)
    assert.deepEqual(
      sizes,
      Array.from({ length: 1_000 }, (_, index) => index),
    )
  })

  test('writes by itself after the interval', async () => {
    const path = join(folder, 'interval.log')
    const log = new AccessLog(path, { flushInterval: 5 })
    log.write(record)
    while (!existsSync(path) || lines(path) === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    await log.close()
  })

  test('opens the file anew when it is told to', async () => {
    const path = join(folder, 'rotate.log')
    const log = new AccessLog(path, { flushInterval: 5 })
    log.write(record)
    while (!existsSync(path) || lines(path) === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    renameSync(path, `${path}.1`)
    log.reopen()
    log.write(record)
    log.write(record)
    await log.close()
    assert.equal(lines(`${path}.1`), 1)
    assert.equal(lines(path), 2)
  })

  test('counts what a missing folder costs, and goes on when it is there', async () => {
    const path = join(folder, 'late', 'a.log')
    const log = new AccessLog(path, { flushInterval: 5, maxPending: 1_000 })
    for (let i = 0; i < 10; i++) log.write(record)
    const dropped = log.stats().dropped
    assert.ok(dropped > 0)
    while (log.stats().failures === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    mkdirSync(join(folder, 'late'))
    while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 5))
    await log.close()
    assert.equal(lines(path), 10 - dropped)
  })

  test('counts what a full disk costs', { skip: !existsSync('/dev/full') }, async () => {
    const log = new AccessLog('/dev/full')
    log.write(record)
    log.write(record)
    await log.close()
    assert.deepEqual(log.stats(), { lines: 2, dropped: 2, failures: 1 })
  })
})
