import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkConnectionIds, checkRemembered, rememberedParameters } from './parameter-checks.ts'
import { TransportError, transportErrorName } from './transport-error.ts'
import { decodeTransportParameters, encodeTransportParameters, TransportParameters, type PreferredAddress } from './transport-parameters.ts'

const token = Uint8Array.from({ length: 16 }, (_, i) => i)

const preferred: PreferredAddress = {
  ipv4Address: Uint8Array.of(192, 0, 2, 1),
  ipv4Port: 443,
  ipv6Address: new Uint8Array(16).fill(0x20),
  ipv6Port: 8443,
  connectionId: Uint8Array.of(9, 8, 7, 6),
  statelessResetToken: token.toReversed(),
}

function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
}

function decode(bytes: Uint8Array, fromServer = true): TransportParameters {
  const parameters = new TransportParameters()
  assert.equal(decodeTransportParameters(bytes, fromServer, parameters), undefined)
  return parameters
}

function codeOf(hex: string, fromServer = true): number | undefined {
  return decodeTransportParameters(bytesOf(hex), fromServer, new TransportParameters())?.code
}

function fullParameters(): TransportParameters {
  return Object.assign(new TransportParameters(), {
    originalDestinationConnectionId: Uint8Array.of(1, 2, 3),
    maxIdleTimeout: 30_000,
    statelessResetToken: token,
    maxUdpPayloadSize: 1452,
    initialMaxData: 4 * 1024 * 1024,
    initialMaxStreamDataBidiLocal: 1024,
    initialMaxStreamDataBidiRemote: 2048,
    initialMaxStreamDataUni: 4096,
    initialMaxStreamsBidi: 100,
    initialMaxStreamsUni: 3,
    ackDelayExponent: 10,
    maxAckDelay: 26,
    disableActiveMigration: true,
    preferredAddress: preferred,
    activeConnectionIdLimit: 8,
    initialSourceConnectionId: new Uint8Array(0),
    retrySourceConnectionId: new Uint8Array(20).fill(5),
    greaseQuicBit: true,
  } satisfies Partial<TransportParameters>)
}

test('nothing said means the defaults of RFC 9000 §18.2', () => {
  const parameters = decode(new Uint8Array(0))
  assert.deepEqual(parameters, new TransportParameters())
  assert.deepEqual(
    [parameters.maxUdpPayloadSize, parameters.ackDelayExponent, parameters.maxAckDelay, parameters.activeConnectionIdLimit],
    [65_527, 3, 25, 2],
  )
  assert.equal(encodeTransportParameters(parameters).length, 0)
})

test('all parameters are written and read', () => {
  assert.deepEqual(decode(encodeTransportParameters(fullParameters(), 5)), fullParameters())
})

test('the longest values are written and read, whatever room the ones before them left', () => {
  for (let size = 0; size <= 20; size++) {
    for (const last of [0, 20]) {
      const parameters = fullParameters()
      parameters.originalDestinationConnectionId = new Uint8Array(size).fill(1)
      parameters.initialSourceConnectionId = new Uint8Array(size).fill(2)
      parameters.retrySourceConnectionId = new Uint8Array(last).fill(3)
      for (const field of ['maxIdleTimeout', 'initialMaxData', 'initialMaxStreamDataBidiLocal', 'initialMaxStreamDataUni'] as const) {
        parameters[field] = 2 ** 52
      }
      parameters.preferredAddress = { ...preferred, connectionId: new Uint8Array(20).fill(4) }
      assert.deepEqual(decode(encodeTransportParameters(parameters, 2 ** 40)), parameters)
    }
  }
})

test('the octets are those of RFC 9000 §18', () => {
  const parameters = new TransportParameters()
  parameters.initialMaxData = 0x1234
  parameters.initialSourceConnectionId = Uint8Array.of(0xaa, 0xbb)
  parameters.disableActiveMigration = true
  assert.equal(Buffer.from(encodeTransportParameters(parameters, 0)).toString('hex'), '04025234' + '0f02aabb' + '0c00' + '1b00')
})

test('RFC 9001 A.2: the parameters of the example ClientHello', () => {
  const parameters = decode(
    bytesOf('0408ffffffffffffffff 05048000ffff 07048000ffff 080110 0104 80007530 090110 0f088394c8f03e515708 06048000ffff'),
    false,
  )
  assert.equal(parameters.initialMaxData, 2 ** 62, 'rounded')
  assert.equal(parameters.initialMaxStreamDataBidiLocal, 0xffff)
  assert.equal(parameters.initialMaxStreamDataBidiRemote, 0xffff)
  assert.equal(parameters.initialMaxStreamDataUni, 0xffff)
  assert.equal(parameters.initialMaxStreamsBidi, 16)
  assert.equal(parameters.initialMaxStreamsUni, 16)
  assert.equal(parameters.maxIdleTimeout, 30_000)
  assert.deepEqual(parameters.initialSourceConnectionId, bytesOf('8394c8f03e515708'))
})

test('every truncation is an error, but between two parameters', () => {
  const bytes = encodeTransportParameters(fullParameters(), 5)
  const ends = new Set<number>([0])
  // Each parameter here has an id and a length below 64, but for the two at the end.
  let at = 0
  while (at < bytes.length) {
    const idSize = 1 << ((bytes[at] as number) >> 6)
    at += idSize + 1 + (bytes[at + idSize] as number)
    ends.add(at)
  }
  assert.ok(ends.has(bytes.length))
  for (let limit = 0; limit < bytes.length; limit++) {
    const fault = decodeTransportParameters(bytes.slice(0, limit), true, new TransportParameters())
    assert.equal(fault?.code, ends.has(limit) ? undefined : TransportError.transportParameterError, `cut at ${limit}`)
  }
})

test('RFC 9000 §18.2: values that must not be are TRANSPORT_PARAMETER_ERROR, those at the bounds are taken', () => {
  for (const [what, hex] of [
    ['max_udp_payload_size below 1,200', '03 02 44af'],
    ['initial_max_streams_bidi above 2^60', '08 08 d000000000000100'],
    ['initial_max_streams_uni above 2^60', '09 08 ffffffffffffffff'],
    ['ack_delay_exponent above 20', '0a 01 15'],
    ['max_ack_delay of 2^14', '0b 04 80004000'],
    ['active_connection_id_limit below 2', '0e 01 01'],
    ['an integer with octets behind it', '01 02 0000'],
    ['an integer that is cut off', '01 01 40'],
    ['an integer without octets', '04 00'],
    ['disable_active_migration with a value', '0c 01 00'],
    ['grease_quic_bit with a value', '6ab2 01 00'],
    ['a stateless reset token of 15 octets', `02 0f ${'00'.repeat(15)}`],
    ['a stateless reset token of 17 octets', `02 11 ${'00'.repeat(17)}`],
    ['a connection id of 21 octets', `0f 15 ${'00'.repeat(21)}`],
    ['a preferred address with an empty connection id', `0d 29 ${'00'.repeat(41)}`],
    ['a preferred address that is cut off', `0d 29 ${'00'.repeat(24)} 01 ${'00'.repeat(16)}`],
    ['a preferred address with octets behind it', `0d 2b ${'00'.repeat(24)} 01 ${'00'.repeat(18)}`],
    ['a preferred address with a connection id of 21 octets', `0d 3e ${'00'.repeat(24)} 15 ${'00'.repeat(37)}`],
  ] as const) {
    assert.equal(codeOf(hex), TransportError.transportParameterError, what)
  }
  for (const hex of ['03 02 44b0', '08 08 d000000000000000', '0a 01 14', '0b 02 7fff', '0e 01 02', '01 02 4000']) {
    assert.equal(codeOf(hex), undefined, hex)
  }
})

test('RFC 9000 §7.4: a parameter that comes twice is an error, known or not', () => {
  assert.equal(codeOf('01 01 05 01 01 05'), TransportError.transportParameterError)
  assert.equal(codeOf('0c 00 04 01 01 0c 00'), TransportError.transportParameterError)
  assert.equal(codeOf('3b 00 3b 00'), TransportError.transportParameterError)
  assert.equal(codeOf('3b 00 4001 01 05'), undefined, 'a long coding of a number is a coding of it')
  assert.equal(codeOf('01 01 05 4001 01 05'), TransportError.transportParameterError)
  assert.equal(codeOf('ffffffffffffffff 00 fffffffffffffffe 00'), undefined, 'two numbers that a double cannot tell apart')
})

test('RFC 9000 §18.2: what only a server may send is an error from a client', () => {
  for (const hex of ['00 01 aa', `02 10 ${'00'.repeat(16)}`, `0d 2a ${'00'.repeat(24)} 01 ${'00'.repeat(17)}`, '10 00']) {
    assert.equal(codeOf(hex, true), undefined, hex)
    assert.equal(codeOf(hex, false), TransportError.transportParameterError, hex)
  }
})

test('RFC 9000 §7.4.2: unknown parameters are ignored, whatever their number and size', () => {
  assert.deepEqual(decode(bytesOf(`3b 00 ffffffffffffffff 03 010203 7ffe 4050 ${'00'.repeat(0x50)}`)), new TransportParameters())
  for (const n of [0, 1, 2 ** 20]) assert.deepEqual(decode(encodeTransportParameters(fullParameters(), n)), fullParameters())
})

test('what is kept does not change with the buffer', () => {
  const bytes = encodeTransportParameters(fullParameters())
  const parameters = decode(bytes)
  bytes.fill(0)
  assert.deepEqual(parameters, fullParameters())
})

test('what is written is read again', () => {
  const size = fc.oneof(fc.nat(100), fc.maxSafeNat())
  fc.assert(
    fc.property(
      fc.record({
        maxIdleTimeout: size,
        maxUdpPayloadSize: fc.integer({ min: 1200, max: 70_000 }),
        initialMaxData: size,
        initialMaxStreamDataBidiLocal: size,
        initialMaxStreamsUni: size.map((value) => Math.min(value, 2 ** 60)),
        ackDelayExponent: fc.nat(20),
        maxAckDelay: fc.nat(2 ** 14 - 1),
        activeConnectionIdLimit: fc.integer({ min: 2, max: 1000 }),
        disableActiveMigration: fc.boolean(),
        initialSourceConnectionId: fc.option(fc.uint8Array({ maxLength: 20 }), { nil: undefined }),
        statelessResetToken: fc.option(fc.uint8Array({ minLength: 16, maxLength: 16 }), { nil: undefined }),
      }),
      (values) => {
        const parameters = Object.assign(new TransportParameters(), values)
        assert.deepEqual(decode(encodeTransportParameters(parameters)), parameters)
      },
    ),
  )
})

test('random octets never throw', () => {
  const likely = fc.array(fc.oneof(fc.nat(0x11), fc.nat(255)), { maxLength: 80 }).map((list) => Uint8Array.from(list))
  fc.assert(
    fc.property(fc.oneof(likely, fc.uint8Array({ maxLength: 200 })), fc.boolean(), (bytes, fromServer) => {
      const fault = decodeTransportParameters(bytes, fromServer, new TransportParameters())
      assert.ok(fault === undefined || fault.code === TransportError.transportParameterError)
    }),
    { numRuns: 1_000 },
  )
})

test('RFC 9000 §7.3: connection ids of the packets and of the parameters must be the same', () => {
  const [client, server, retry] = [Uint8Array.of(1), Uint8Array.of(2), Uint8Array.of(3)]
  const said = new TransportParameters()
  said.initialSourceConnectionId = server
  said.originalDestinationConnectionId = client
  const code = (retrySource: Uint8Array | undefined): number | undefined =>
    checkConnectionIds(said, true, server, client, retrySource)?.code
  assert.equal(code(undefined), undefined)
  assert.equal(code(retry), TransportError.transportParameterError, 'a Retry packet that is not said')
  said.retrySourceConnectionId = retry.slice()
  assert.equal(code(retry), undefined)
  assert.equal(code(undefined), TransportError.transportParameterError, 'a Retry packet that never was')
  assert.equal(code(client), TransportError.transportParameterError)
  said.originalDestinationConnectionId = undefined
  assert.equal(code(retry), TransportError.transportParameterError)

  const clientSaid = new TransportParameters()
  assert.equal(checkConnectionIds(clientSaid, false, client, undefined, undefined)?.code, TransportError.transportParameterError)
  clientSaid.initialSourceConnectionId = Uint8Array.of(1, 0)
  assert.equal(checkConnectionIds(clientSaid, false, client, undefined, undefined)?.code, TransportError.transportParameterError)
  clientSaid.initialSourceConnectionId = Uint8Array.of(1)
  assert.equal(checkConnectionIds(clientSaid, false, client, undefined, undefined), undefined)
})

test('RFC 9000 §7.4.1: 0-RTT remembers limits, and may not be accepted with smaller ones', () => {
  const kept = rememberedParameters(fullParameters())
  assert.equal(kept.initialMaxData, fullParameters().initialMaxData)
  assert.deepEqual(
    [kept.ackDelayExponent, kept.maxAckDelay, kept.statelessResetToken, kept.preferredAddress, kept.originalDestinationConnectionId],
    [3, 25, undefined, undefined, undefined],
  )
  assert.equal(checkRemembered(kept, fullParameters()), undefined)
  for (const field of [
    'activeConnectionIdLimit',
    'initialMaxData',
    'initialMaxStreamDataBidiLocal',
    'initialMaxStreamDataBidiRemote',
    'initialMaxStreamDataUni',
    'initialMaxStreamsBidi',
    'initialMaxStreamsUni',
  ] as const) {
    const fresh = fullParameters()
    fresh[field]++
    assert.equal(checkRemembered(kept, fresh), undefined)
    fresh[field] -= 2
    assert.equal(checkRemembered(kept, fresh)?.code, TransportError.protocolViolation, field)
  }
})

test('errors have the names of RFC 9000 §20.1', () => {
  assert.equal(transportErrorName(TransportError.noViablePath), 'NO_VIABLE_PATH')
  assert.equal(transportErrorName(TransportError.transportParameterError), 'TRANSPORT_PARAMETER_ERROR')
  assert.equal(transportErrorName(0x100 + 42), 'CRYPTO_ERROR (TLS alert 42)')
  assert.equal(transportErrorName(0x200), 'error 0x200')
  assert.equal(transportErrorName(0x11), 'error 0x11')
})
