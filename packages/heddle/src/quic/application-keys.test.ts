import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeCrypto, type CipherSuite, type PacketKey, type QuicCrypto } from '../native/index.ts'
import { ApplicationKeys } from './application-keys.ts'

import { writePing } from './frame-writer.ts'
import { headerKeyOf, nextSecret, packetKeyOf } from './key-schedule.ts'
import { ForgeryCount, maskHeader } from './packet-opener.ts'
import { PacketWriter } from './packet-writer.ts'
import { TransportError } from './transport-error.ts'

const cryptography = nodeCrypto()
const suite: CipherSuite = 'TLS_AES_128_GCM_SHA256'
const id = Uint8Array.of(1, 2, 3, 4)

/** One endpoint: its keys, and the packets it seals, numbered from 0. */
class End {
  readonly keys: ApplicationKeys
  nextNumber = 0
  largestReceived = -1

  constructor(readSecret: number, writeSecret: number) {
    this.keys = new ApplicationKeys(cryptography, new ForgeryCount())
    this.keys.install('read', suite, new Uint8Array(32).fill(readSecret))
    this.keys.install('write', suite, new Uint8Array(32).fill(writeSecret))
    this.keys.confirmed = true
    this.keys.retention = 300
  }

  seal(): Uint8Array {
    const writer = new PacketWriter()
    writer.startDatagram(new Uint8Array(100), 0, 100)
    assert.ok(writer.startShort(id, this.nextNumber++, -1, this.keys.keyPhase, false))
    writePing(writer)
    return writer.buffer.slice(0, writer.finish(this.keys))
  }

  open(packet: Uint8Array, now = 0): boolean {
    const isOpened = this.keys.open(packet.slice(), 0, 5, packet.length, this.largestReceived, now)
    if (isOpened) this.largestReceived = Math.max(this.largestReceived, this.keys.packetNumber)
    return isOpened
  }

  get phases(): readonly [read: number, write: number] {
    return [this.keys.readPhase, this.keys.writePhase]
  }
}

function pair(): [End, End] {
  return [new End(1, 2), new End(2, 1)]
}

/** `to` opens a packet of `from` that acknowledges `to`'s latest. */
function acknowledge(from: End, to: End, now = 0): void {
  assert.ok(to.open(from.seal(), now))
  assert.equal(to.keys.onAcked(to.nextNumber - 1), undefined)
}

/** A has updated, and B has answered. */
function updatedPair(): [End, End] {
  const [a, b] = pair()
  assert.ok(b.open(a.seal()))
  acknowledge(b, a)
  assert.ok(a.keys.update())
  assert.ok(b.open(a.seal()))
  acknowledge(b, a)
  assert.deepEqual(
    [a.phases, b.phases],
    [
      [1, 1],
      [1, 1],
    ],
  )
  return [a, b]
}

test('an update is answered in kind, and both go on', () => {
  const [a, b] = pair()
  assert.ok(b.open(a.seal()))
  acknowledge(b, a)
  assert.equal(a.keys.keyPhase, 0)
  assert.ok(a.keys.update())
  assert.equal(a.keys.keyPhase, 1)
  assert.deepEqual(a.phases, [0, 1])
  assert.ok(a.open(b.seal()), 'the peer did not hear of it yet')
  assert.ok(b.open(a.seal()))
  assert.deepEqual(b.phases, [1, 1])
  assert.ok(a.open(b.seal()))
  assert.deepEqual(a.phases, [1, 1])
  assert.ok(b.open(a.seal()))
})

test('many updates, from either side, keep both in step', () => {
  const [a, b] = pair()
  for (let round = 1; round <= 20; round++) {
    const [from, to] = round % 2 === 0 ? [a, b] : [b, a]
    const now = round * 1_000
    for (const end of [from, to]) end.keys.expire(now)
    assert.ok(to.open(from.seal(), now))
    acknowledge(to, from, now)
    assert.ok(from.keys.update(), `round ${round}`)
    assert.ok(to.open(from.seal(), now))
    acknowledge(to, from, now)
    assert.deepEqual(
      [a.phases, b.phases],
      [
        [round, round],
        [round, round],
      ],
    )
  }
})

test('RFC 9001 §6.1: no update before the handshake is confirmed', () => {
  const [a, b] = pair()
  a.keys.confirmed = false
  assert.ok(b.open(a.seal()))
  acknowledge(b, a)
  assert.equal(a.keys.update(), false)
  assert.deepEqual(a.phases, [0, 0])
  a.keys.confirmed = true
  assert.equal(a.keys.update(), true)
})

test('RFC 9001 §6.1: no update before the phase is acknowledged', () => {
  const [a, b] = pair()
  assert.equal(a.keys.update(), false)
  const before = a.seal()
  assert.ok(b.open(before))
  acknowledge(b, a)
  assert.ok(a.keys.update())
  assert.equal(a.keys.update(), false)
  const after = a.seal()
  assert.equal(a.keys.onAcked(0), undefined, 'a packet of the phase before tells nothing of this one')
  assert.equal(a.keys.canUpdate, false)
  assert.ok(b.open(after))
})

test('RFC 9001 §6.5: no update while overtaken packets are waited for', () => {
  const [a] = updatedPair()
  assert.equal(a.keys.update(), false)
  assert.equal(a.keys.deadline, 300)
  a.keys.expire(299)
  assert.equal(a.keys.update(), false)
  a.keys.expire(300)
  assert.equal(a.keys.deadline, Infinity)
  assert.equal(a.keys.update(), true)
})

test('packets that an update overtook are opened until their keys go', () => {
  const [a, b] = pair()
  const [first, late, later] = [a.seal(), a.seal(), a.seal()]
  assert.ok(b.open(first))
  acknowledge(b, a)
  a.keys.update()
  assert.ok(b.open(a.seal(), 100))
  assert.ok(b.open(late, 200))
  assert.equal(b.keys.packetNumber, 1)
  assert.deepEqual(b.phases, [1, 1])
  b.keys.expire(400)
  assert.equal(b.open(later, 400), false)
  assert.equal(b.keys.fault, undefined)
  assert.ok(b.open(a.seal(), 400), 'and the phase goes on')
})

test('packets of the new phase may overtake each other', () => {
  const [a, b] = pair()
  const old = a.seal()
  assert.ok(b.open(a.seal()))
  acknowledge(b, a)
  a.keys.update()
  const [third, fourth] = [a.seal(), a.seal()]
  assert.ok(b.open(fourth))
  assert.ok(b.open(third))
  assert.ok(b.open(old))
  assert.deepEqual(b.phases, [1, 1])
})

/** A packet of A's phase `phase` with any number, sealed without regard for the rules. */
function packetOf(phase: number, packetNumber: number): Uint8Array {
  const first = new Uint8Array(32).fill(2)
  let secret: Uint8Array = first
  for (let i = 0; i < phase; i++) secret = nextSecret(cryptography, suite, secret)
  const packetKey = packetKeyOf(cryptography, suite, secret)
  const headerKey = headerKeyOf(cryptography, suite, first)
  const writer = new PacketWriter()
  writer.startDatagram(new Uint8Array(100), 0, 100)
  assert.ok(writer.startShort(id, packetNumber, -1, phase & 1, false))
  writePing(writer)
  const size = writer.finish({
    seal(buffer, headerStart, packetNumberStart, payloadStart, payloadLimit, number) {
      packetKey.seal(buffer, headerStart, payloadStart, payloadLimit, number)
      maskHeader(headerKey, buffer, headerStart, packetNumberStart, payloadStart - packetNumberStart)
    },
  })
  return writer.buffer.slice(0, size)
}

test('RFC 9001 §6.2: two updates of the peer in a row, without a packet of ours between, are KEY_UPDATE_ERROR', () => {
  const [, b] = pair()
  assert.ok(b.open(packetOf(0, 0)))
  assert.ok(b.open(packetOf(1, 1)))
  assert.equal(b.open(packetOf(2, 2)), false)
  assert.equal(b.keys.fault?.code, TransportError.keyUpdateError)
  assert.deepEqual(b.phases, [1, 1])
})

test('RFC 9001 §6.2: a second update is followed once ours could be known', () => {
  const [, b] = pair()
  assert.ok(b.open(packetOf(1, 1)))
  b.seal()
  assert.ok(b.open(packetOf(2, 2)))
  assert.deepEqual(b.phases, [2, 2])
  assert.ok(b.open(packetOf(1, 0)), 'of the phase before')
})

test('RFC 9001 §6.4: newer keys with a lower packet number are KEY_UPDATE_ERROR', () => {
  const [, b] = pair()
  assert.ok(b.open(packetOf(1, 10)))
  b.seal()
  b.keys.expire(Infinity)
  assert.equal(b.open(packetOf(2, 5)), false)
  assert.equal(b.keys.fault?.code, TransportError.keyUpdateError)
})

test('RFC 9001 §6.4: older keys with a higher packet number than newer ones are not taken', () => {
  const [, b] = pair()
  assert.ok(b.open(packetOf(1, 10)))
  assert.ok(b.open(packetOf(1, 5)))
  for (const packetNumber of [20, 7]) {
    assert.equal(b.open(packetOf(0, packetNumber)), false, `${packetNumber}`)
    assert.deepEqual(b.phases, [1, 1])
  }
  assert.ok(b.open(packetOf(0, 4)))
})

test('RFC 9001 §6.1: after an update of the peer, too, the phase must be acknowledged before the next', () => {
  const [a, b] = pair()
  assert.ok(a.open(b.seal()))
  acknowledge(a, b)
  assert.equal(b.keys.canUpdate, true)
  assert.ok(b.open(packetOf(1, 5)))
  b.keys.expire(Infinity)
  assert.equal(b.keys.canUpdate, false)
  b.seal()
  assert.ok(b.open(packetOf(1, 6)))
  assert.equal(b.keys.onAcked(b.nextNumber - 1), undefined)
  assert.equal(b.keys.canUpdate, true)
})

test('RFC 9001 §6.2: an acknowledgement of new keys under old ones is KEY_UPDATE_ERROR', () => {
  const [a, b] = pair()
  assert.ok(b.open(a.seal()))
  acknowledge(b, a)
  const old = b.seal()
  a.keys.update()
  const number = a.nextNumber
  assert.ok(b.open(a.seal()))
  assert.ok(a.open(old))
  assert.equal(a.keys.onAcked(number - 1), undefined)
  assert.equal(a.keys.onAcked(number)?.code, TransportError.keyUpdateError)
})

test('RFC 9001 §6.3: a forged key phase moves nothing', () => {
  const [a, b] = pair()
  assert.ok(b.open(a.seal()))
  for (let bit = 0; bit < 8; bit++) {
    const packet = a.seal()
    packet[0] = (packet[0] as number) ^ (1 << bit)
    assert.equal(b.open(packet), false)
    assert.deepEqual(b.phases, [0, 0])
    assert.equal(b.keys.deadline, Infinity)
  }
  assert.ok(b.open(a.seal()))
})

test('RFC 9001 §6.6: an update is due before a key has sealed all it may', () => {
  const [a, b] = pair()
  a.keys.confidentialityLimit = 8
  for (let i = 0; i < 4; i++) {
    assert.equal(a.keys.isUpdateDue, false)
    assert.ok(b.open(a.seal()))
  }
  assert.equal(a.keys.isUpdateDue, true)
  acknowledge(b, a)
  assert.equal(a.keys.isExhausted, false)
  a.keys.update()
  assert.deepEqual([a.keys.isUpdateDue, a.keys.isExhausted], [false, false])
  for (let i = 0; i < 8; i++) a.seal()
  assert.equal(a.keys.isExhausted, true)
})

test('RFC 9001 §6.6: too many packets that cannot be opened are AEAD_LIMIT_REACHED', () => {
  const [, b] = pair()
  b.keys.integrityLimit = 3
  const packet = packetOf(0, 0)
  packet[20] = (packet[20] as number) ^ 1
  const codes = Array.from({ length: 4 }, () => {
    assert.equal(b.open(packet), false)
    return b.keys.fault?.code
  })
  assert.deepEqual(codes, [undefined, undefined, undefined, TransportError.aeadLimitReached])
})

test('the suite gives the limits', () => {
  const keys = new ApplicationKeys(cryptography, new ForgeryCount())
  keys.install('read', 'TLS_CHACHA20_POLY1305_SHA256', new Uint8Array(32))
  keys.install('write', 'TLS_AES_256_GCM_SHA384', new Uint8Array(48))
  assert.equal(keys.integrityLimit, 2 ** 36)
  assert.equal(keys.confidentialityLimit, 2 ** 23)
})

test('any packet of a phase that is acknowledged is enough', () => {
  const [a, b] = pair()
  for (let i = 0; i < 3; i++) a.seal()
  assert.ok(a.open(b.seal()))
  assert.equal(a.keys.onAcked(0), undefined)
  assert.equal(a.keys.canUpdate, true)
})

test('each direction has its keys when TLS gives them, until all are discarded', () => {
  const keys = new ApplicationKeys(cryptography, new ForgeryCount())
  const packet = packetOf(0, 0)
  assert.deepEqual([keys.canOpen, keys.canSeal], [false, false])
  assert.equal(keys.open(packet, 0, 5, packet.length, -1, 0), false)
  keys.install('write', suite, new Uint8Array(32))
  assert.deepEqual([keys.canOpen, keys.canSeal], [false, true])
  keys.install('read', suite, new Uint8Array(32))
  assert.deepEqual([keys.canOpen, keys.canSeal], [true, true])
  keys.discard()
  assert.deepEqual([keys.canOpen, keys.canSeal], [false, false])
  assert.equal(keys.open(packet, 0, 5, packet.length, -1, 0), false)
})

test('no key is left open, and none is closed twice, through updates and discard', () => {
  const open = new Set<object>()
  const counted: QuicCrypto = Object.create(cryptography)
  counted.packetKey = (...parameters) => {
    const inner = cryptography.packetKey(...parameters)
    const key: PacketKey = {
      seal: (...rest) => {
        assert.ok(open.has(key), 'sealed with a closed key')
        inner.seal(...rest)
      },
      open: (...rest) => {
        assert.ok(open.has(key), 'opened with a closed key')
        return inner.open(...rest)
      },
      close: () => assert.ok(open.delete(key), 'closed twice'),
    }
    open.add(key)
    return key
  }
  const keys = new ApplicationKeys(counted, new ForgeryCount())
  keys.install('read', suite, new Uint8Array(32).fill(2))
  keys.install('write', suite, new Uint8Array(32).fill(1))
  assert.equal(open.size, 3)
  for (let phase = 1; phase < 5; phase++) {
    const packet = packetOf(phase, phase)
    assert.ok(keys.open(packet, 0, 5, packet.length, phase - 1, 0))
    const writer = new PacketWriter()
    writer.startDatagram(new Uint8Array(100), 0, 100)
    writer.startShort(id, phase, -1, keys.keyPhase, false)
    writePing(writer)
    writer.finish(keys)
    assert.equal(open.size, 4)
  }
  keys.expire(Infinity)
  assert.equal(open.size, 3)
  keys.discard()
  assert.equal(open.size, 0)
})
