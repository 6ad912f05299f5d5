import { Opcode } from '../../ws/index.ts'
import {
  binary,
  close,
  echoes,
  fragments,
  frame,
  hex,
  messageLine,
  ping,
  pong,
  refused,
  rsv1,
  sample,
  text,
  type WebSocketCase,
} from './case.ts'

const framing = '1 framing'
const pings = '2 pings and pongs'
const reserved = '3 reserved bits'
const opcodes = '4 opcodes'

function framingCases(): WebSocketCase[] {
  const cases: WebSocketCase[] = []
  for (const length of [0, 1, 125, 126, 127, 128, 65_535, 65_536]) {
    const payload = sample(length)
    cases.push(echoes(framing, `text of ${length}`, [text(payload)], [payload.toString()]))
    cases.push(echoes(framing, `binary of ${length}`, [binary(payload)], [payload]))
  }
  cases.push(
    echoes(
      framing,
      'every octet',
      [binary(Buffer.from(Array.from({ length: 256 }, (_, i) => i)))],
      [Buffer.from(Array.from({ length: 256 }, (_, i) => i))],
    ),
    echoes(framing, 'several messages at once', [text('a'), binary(hex('00')), text(''), text('b')], ['a', hex('00'), '', 'b']),
    // RFC 6455 §5.2: the least octets that can hold the length.
    refused(framing, '125 in two octets', 1002, [frame(0x81, sample(125), { lengthOctets: 2 })]),
    refused(framing, '0 in two octets', 1002, [frame(0x82, '', { lengthOctets: 2 })]),
    refused(framing, '65535 in eight octets', 1002, [frame(0x82, sample(65_535), { lengthOctets: 8 })]),
    refused(framing, '5 in eight octets', 1002, [frame(0x81, 'Hello', { lengthOctets: 8 })]),
    refused(framing, 'a length of 64 bits', 1002, [frame(0x82, 'Hello', { declared: 0x8000_0000_0000_0000n })]),
    // RFC 6455 §5.1
    refused(framing, 'a client without a mask', 1002, [frame(0x81, 'Hello', { mask: false })], [], { peer: 'client', failsAt: 2 }),
    refused(framing, 'a server with a mask', 1002, [frame(0x81, 'Hello', { mask: true })], [], { peer: 'server', failsAt: 2 }),
    refused(framing, 'a Ping without a mask behind a message', 1002, [text('a'), frame(0x89, '', { mask: false })], ['text "a"'], {
      peer: 'client',
    }),
  )
  return cases
}

function pingCases(): WebSocketCase[] {
  const told = (name: string, frames: WebSocketCase['frames'], lines: string[]): WebSocketCase => ({
    heading: pings,
    name,
    frames: [...frames, close(1000)],
    told: [...lines, 'peer closes 1000 ""', 'over 1000 clean'],
    answered: [...lines.filter((line) => !line.startsWith('pong')).map((line) => line.replace(/^ping/, 'pong')), 'close 1000'],
  })
  const largest = sample(125)
  return [
    told('a Ping without payload', [ping()], ['ping 0 ']),
    told('a Ping with payload', [ping('Hello')], ['ping 5 48656c6c6f']),
    told('a Ping with octets that are no text', [ping(hex('00 ff fe fd fc fb 00 ff'))], ['ping 8 00fffefdfcfb00ff']),
    told('a Ping of 125', [ping(largest)], [messageLine(largest).replace('binary', 'ping')]),
    refused(pings, 'a Ping of 126', 1002, [ping(sample(126))], [], { failsAt: 2 }),
    refused(pings, 'a Ping of 65536', 1002, [ping(sample(65_536))], [], { failsAt: 2 }),
    told('a Pong nobody asked for', [pong()], ['pong 0 ']),
    told('a Pong nobody asked for, with payload', [pong('unsolicited')], ['pong 11 756e736f6c696369746564']),
    told('a Pong, then a Ping', [pong('a'), ping('b')], ['pong 1 61', 'ping 1 62']),
    told(
      'ten Pings',
      Array.from({ length: 10 }, (_, i) => ping(`${i}`)),
      Array.from({ length: 10 }, (_, i) => `ping 1 3${i}`),
    ),
    told('Pings between messages', [text('a'), ping('b'), text('c')], ['text "a"', 'ping 1 62', 'text "c"']),
  ]
}

function reservedCases(): WebSocketCase[] {
  const cases: WebSocketCase[] = []
  for (let bits = 1; bits <= 7; bits++) {
    const name = `RSV ${bits.toString(2).padStart(3, '0')}`
    cases.push(refused(reserved, `${name} on text`, 1002, [frame(0x81 | (bits << 4), 'Hello')], [], { failsAt: 2 }))
    cases.push(refused(reserved, `${name} on binary, behind a message`, 1002, [text('a'), frame(0x82 | (bits << 4))], ['text "a"']))
    cases.push(refused(reserved, `${name} on a Ping`, 1002, [ping(), frame(0x89 | (bits << 4), 'x')], ['ping 0 ']))
    cases.push(refused(reserved, `${name} on a Close`, 1002, [frame(0x88 | (bits << 4), hex('03e8'))]))
    cases.push(refused(reserved, `${name} on a continuation`, 1002, [frame(0x01, 'a'), frame(0x80 | (bits << 4), 'b')]))
  }
  return cases
}

function opcodeCases(): WebSocketCase[] {
  const cases: WebSocketCase[] = []
  for (const opcode of [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) {
    cases.push(refused(opcodes, `opcode ${opcode}`, 1002, [frame(0x80 | opcode)], [], { failsAt: 2 }))
    cases.push(
      refused(opcodes, `opcode ${opcode} with payload, behind a message`, 1002, [text('a'), frame(0x80 | opcode, 'x')], ['text "a"']),
    )
    cases.push(refused(opcodes, `opcode ${opcode} within a message`, 1002, [frame(0x01, 'a'), frame(0x80 | opcode)]))
  }
  return cases
}

const fragmentation = '5 fragmentation'

function fragmentationCases(): WebSocketCase[] {
  const { Text, Binary } = Opcode
  const withPings: WebSocketCase = {
    heading: fragmentation,
    name: 'Pings within a message',
    frames: [frame(0x01, 'frag'), ping('1'), frame(0x00, 'men'), ping('2'), pong('3'), frame(0x80, 'ts'), close(1000)],
    told: ['ping 1 31', 'ping 1 32', 'pong 1 33', 'text "fragments"', 'peer closes 1000 ""', 'over 1000 clean'],
    answered: ['pong 1 31', 'pong 1 32', 'text "fragments"', 'close 1000'],
  }
  const closedWithin: WebSocketCase = {
    heading: fragmentation,
    name: 'a Close within a message',
    frames: [frame(0x01, 'never'), close(1001, 'gone'), frame(0x80, 'complete')],
    told: ['peer closes 1001 "gone"', 'over 1001 clean'],
    answered: ['close 1001'],
  }
  const thousand = sample(1_000)
  return [
    refused(fragmentation, 'a Ping in two fragments', 1002, [frame(0x09, 'a'), frame(0x80, 'b')], [], { failsAt: 2 }),
    refused(fragmentation, 'a Pong in two fragments', 1002, [frame(0x0a, 'a'), frame(0x80, 'b')], [], { failsAt: 2 }),
    refused(fragmentation, 'a Close in two fragments', 1002, [frame(0x08, hex('03')), frame(0x80, hex('e8'))], [], { failsAt: 2 }),
    echoes(fragmentation, 'text in two', fragments(Text, 'fragment1', 'fragment2'), ['fragment1fragment2']),
    echoes(fragmentation, 'binary in two', fragments(Binary, hex('0001'), hex('02')), [hex('000102')]),
    echoes(fragmentation, 'empty fragments', fragments(Text, '', '', ''), ['']),
    echoes(fragmentation, 'empty fragments around one', fragments(Text, '', 'middle', ''), ['middle']),
    echoes(fragmentation, 'empty fragments of binary', fragments(Binary, hex(''), hex('ff'), hex('')), [hex('ff')]),
    echoes(fragmentation, 'in fragments of one octet', fragments(Binary, ...Array.from(thousand, (octet) => Buffer.from([octet]))), [
      thousand,
    ]),
    echoes(
      fragmentation,
      'two messages in fragments',
      [...fragments(Text, 'a', 'b'), ...fragments(Binary, hex('01'), hex('02'))],
      ['ab', hex('0102')],
    ),
    withPings,
    closedWithin,
    refused(fragmentation, 'a continuation of nothing', 1002, [frame(0x80, 'x')], [], { failsAt: 2 }),
    refused(fragmentation, 'a continuation of nothing that goes on', 1002, [frame(0x00, 'x')]),
    refused(fragmentation, 'a continuation behind a whole message', 1002, [text('a'), frame(0x80, 'b')], ['text "a"']),
    refused(
      fragmentation,
      'a continuation behind the last fragment',
      1002,
      [...fragments(Text, 'a', 'b'), frame(0x00, 'c')],
      ['text "ab"'],
    ),
    refused(fragmentation, 'text within text', 1002, [frame(0x01, 'a'), text('b')]),
    refused(fragmentation, 'binary within text, with a Ping between', 1002, [frame(0x01, 'a'), ping(), binary(hex('00'))], ['ping 0 ']),
    refused(fragmentation, 'the beginning of text within text', 1002, [frame(0x01, 'a'), frame(0x01, 'b')]),
  ]
}

/** Chapters 1 to 5. */
export const framingChapters: readonly WebSocketCase[] = [
  ...framingCases(),
  ...pingCases(),
  ...reservedCases(),
  ...opcodeCases(),
  ...fragmentationCases(),
]

/** RSV1 where deflate was agreed on, but not on the first frame of a message (RFC 7692 §6). */
export const rsv1Misplaced: readonly { readonly name: string; readonly frames: WebSocketCase['frames'] }[] = [
  { name: 'a continuation', frames: [frame(0x01, 'a'), frame(0x80 | rsv1, 'b')] },
  { name: 'a Ping', frames: [frame(0x89 | rsv1)] },
  { name: 'a Pong', frames: [frame(0x8a | rsv1)] },
  { name: 'a Close', frames: [frame(0x88 | rsv1, hex('03e8'))] },
]
