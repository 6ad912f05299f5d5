import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Budget, parsePriority, readOrigins, UsageError } from '../http/index.ts'
import { Windows } from './flow.ts'
import { stageOrigins } from './origin.ts'
import { Settings } from './settings.ts'
import { Staging } from './staging.ts'

test('a budget allows a burst, then a rate, and never more than the burst', () => {
  const budget = new Budget(3, 10)
  const taken = (now: number): number => {
    let count = 0
    while (budget.take(now)) count++
    return count
  }
  assert.equal(taken(1000), 3)
  assert.equal(taken(1050), 0)
  assert.equal(taken(1100), 1)
  assert.equal(taken(1350), 2)
  assert.equal(taken(1_000_000), 3)
})

test('a budget fills while it is used', () => {
  const budget = new Budget(2, 100)
  for (let now = 0; now < 10_000; now += 10) assert.ok(budget.take(now), `at ${now}`)
})

test('windows: credit at half, widening, and the limit of 2^31 - 1', () => {
  const windows = new Windows(100, 1000)
  assert.equal(windows.growSend(0x7fff_ffff - 100), true)
  assert.equal(windows.growSend(1), false)
  assert.equal(windows.sendWindow, 0x7fff_ffff)
  assert.equal(windows.takeReceived(1000), true)
  assert.equal(windows.takeReceived(1), false)
  assert.equal(windows.consumed(499), false)
  assert.equal(windows.consumed(1), true)
  windows.widen(4000)
  windows.widen(3000)
  assert.equal(windows.refill(), 3500)
  assert.equal(windows.receiveTarget, 4000)
})

test('priorities as RFC 9218 §4 writes them, and what is malformed', () => {
  const cases: [string, number, boolean][] = [
    ['', 3, false],
    ['u=0', 0, false],
    ['u=7, i', 7, true],
    ['i', 3, true],
    ['i=?0', 3, false],
    ['i=?1;x=1, u=5;y', 5, true],
    ['u=8', 3, false],
    ['u=-1', 3, false],
    ['u=1.5', 3, false],
    ['u="1"', 3, false],
    ['U=1', 3, false],
    ['u=2, u=4', 4, false],
    [' u=1 ,  i ', 1, true],
    ['foo=bar, u=6', 6, false],
    [',,,', 3, false],
  ]
  for (const [text, urgency, incremental] of cases) assert.deepEqual(parsePriority(text), { urgency, incremental }, text)
})

function settingsPayload(...settings: readonly (readonly [number, number])[]): Uint8Array {
  return Uint8Array.from(
    settings.flatMap(([id, value]) => [id >>> 8, id & 255, value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255]),
  )
}

test('settings: what RFC 9113 §6.5.2 forbids, with its code', () => {
  const read = (settings: Settings, fromServer: boolean, ...list: readonly (readonly [number, number])[]): number =>
    settings.read(settingsPayload(...list), 0, list.length * 6, fromServer)
  const cases: [string, readonly [number, number], boolean, number][] = [
    ['ENABLE_PUSH 0', [2, 0], false, 0],
    ['ENABLE_PUSH 1 from a client', [2, 1], false, 0],
    ['ENABLE_PUSH 1 from a server', [2, 1], true, 1],
    ['ENABLE_PUSH 2', [2, 2], false, 1],
    ['INITIAL_WINDOW_SIZE 2^31 - 1', [4, 0x7fff_ffff], false, 0],
    ['INITIAL_WINDOW_SIZE 2^31', [4, 0x8000_0000], false, 3],
    ['MAX_FRAME_SIZE 16383', [5, 16_383], false, 1],
    ['MAX_FRAME_SIZE 16384', [5, 16_384], false, 0],
    ['MAX_FRAME_SIZE 2^24 - 1', [5, 0xff_ffff], false, 0],
    ['MAX_FRAME_SIZE 2^24', [5, 0x100_0000], false, 1],
    ['ENABLE_CONNECT_PROTOCOL 2', [8, 2], true, 1],
    ['NO_RFC7540_PRIORITIES 2', [9, 2], true, 1],
    ['an unknown setting', [0xabcd, 0xffff_ffff], false, 0],
  ]
  for (const [title, setting, fromServer, code] of cases) assert.equal(read(new Settings(), fromServer, setting), code, title)
  const settings = new Settings()
  assert.equal(read(settings, true, [8, 1], [1, 0], [3, 0xffff_ffff]), 0)
  assert.deepEqual([settings.enableConnectProtocol, settings.headerTableSize, settings.maxConcurrentStreams], [true, 0, 0xffff_ffff])
  assert.equal(read(settings, true, [8, 0]), 1, 'extended CONNECT is not withdrawn')
})

test('a peer whose SETTINGS give no limit of streams is not asked for all at once', () => {
  const settings = new Settings()
  assert.equal(settings.maxConcurrentStreams, 100)
  settings.read(new Uint8Array(0), 0, 0, true)
  assert.equal(settings.maxConcurrentStreams, 1000)
})

function originsOf(payload: Uint8Array, known: Set<string> = new Set()): Set<string> {
  readOrigins(payload, 0, payload.length, known)
  return known
}

test('origins are read, and what is none is skipped', () => {
  const staging = new Staging()
  stageOrigins(staging, ['https://a.test', 'https://b.test:8443'])
  const payload = Buffer.from(staging.out.buffer.subarray(9, staging.out.length))
  assert.deepEqual([...originsOf(payload)], ['https://a.test', 'https://b.test:8443'])
  const odd = Buffer.concat([Buffer.from('\0\x0enot an origin!\0\x03abc', 'latin1'), payload, Buffer.from([0xff, 0xff, 0x61])])
  assert.deepEqual([...originsOf(odd, new Set(['https://c.test']))], ['https://c.test', 'https://a.test', 'https://b.test:8443'])
  assert.throws(() => stageOrigins(staging, ['https://a.test/path']), UsageError)
})

test('the set of origins is bounded', () => {
  const known = new Set<string>()
  for (let i = 0; i < 1000; i++) {
    const text = `https://${i}.test`
    const payload = Buffer.concat([Buffer.from([0, text.length]), Buffer.from(text)])
    originsOf(payload, known)
  }
  assert.equal(known.size, 256)
})
