import { Opcode, type DeflateParameters } from '../../ws/index.ts'
import { rsv1Misplaced } from './cases-framing.ts'
import { close, deflated, echoes, fragments, frame, hex, ping, pieces, refused, rsv1, sample, text, type WebSocketCase } from './case.ts'
import type { PeerFrame } from './peer-frame.ts'

const heading = '12 compression'
const settings = '13 parameters of compression'

const takeover: DeflateParameters = {
  serverNoContextTakeover: false,
  clientNoContextTakeover: false,
  serverMaxWindowBits: 15,
  clientMaxWindowBits: 15,
}
const noTakeover: DeflateParameters = { ...takeover, serverNoContextTakeover: true, clientNoContextTakeover: true }

/** A message compressed by itself, in as many fragments as there are sizes, and one more. */
function compressed(opcode: number, payload: string | Uint8Array, size = Infinity, windowBits = 15): PeerFrame[] {
  const parts = fragments(opcode, ...pieces(deflated(payload, windowBits), size))
  return parts.map((part, i) => (i === 0 ? { ...part, first: part.first | rsv1 } : part))
}

function echoed(
  name: string,
  frames: readonly PeerFrame[],
  messages: readonly (string | Uint8Array)[],
  deflate: DeflateParameters,
  chapter = heading,
): WebSocketCase {
  return echoes(chapter, name, frames, messages, { deflate })
}

function compressionCases(): WebSocketCase[] {
  const { Text, Binary } = Opcode
  const long = sample(5_000)
  const bomb = deflated(Buffer.alloc(1_000_000))
  const cases: WebSocketCase[] = []
  for (const length of [16, 64, 256, 1_024, 4_096, 16_384, 65_536]) {
    const payload = sample(length)
    cases.push(
      echoed(
        `text of ${length}`,
        [0, 1, 2].flatMap(() => compressed(Text, payload)),
        Array.from({ length: 3 }, () => payload.toString()),
        noTakeover,
      ),
    )
    cases.push(echoed(`binary of ${length}`, compressed(Binary, payload), [payload], noTakeover))
  }
  cases.push(
    echoed('nothing', compressed(Text, ''), [''], noTakeover),
    echoed('nothing, as RFC 7692 §7.2.3.6 writes it', [frame(0xc1, hex('00'))], [''], noTakeover),
    // RFC 7692 §7.2.3.1
    echoed('Hello', [frame(0xc1, hex('f2 48 cd c9 c9 07 00'))], ['Hello'], noTakeover),
    echoed('Hello in two fragments', fragments(0x41, hex('f2 48 cd'), hex('c9 c9 07 00')), ['Hello'], noTakeover),
    // RFC 7692 §7.2.3.3: no compression within the compressed message.
    echoed('a block without compression', [frame(0xc1, hex('00 05 00 fa ff 48 65 6c 6c 6f 00'))], ['Hello'], noTakeover),
    // RFC 7692 §7.2.3.4: BFINAL is set.
    echoed('the last block of all', [frame(0xc1, hex('f3 48 cd c9 c9 07 00 00'))], ['Hello'], noTakeover),
    // RFC 7692 §7.2.3.5
    echoed('two blocks in one message', [frame(0xc1, hex('f2 48 05 00 00 00 ff ff ca c9 c9 07 00'))], ['Hello'], noTakeover),
    echoed('in fragments of 7', compressed(Text, long, 7), [long.toString()], noTakeover),
    echoed(
      'uncompressed among compressed',
      [text('plain'), ...compressed(Text, 'packed'), text('plain')],
      ['plain', 'packed', 'plain'],
      noTakeover,
    ),
    {
      heading,
      name: 'a Ping within a compressed message',
      deflate: noTakeover,
      frames: [frame(0x41, hex('f2 48 cd')), ping('p'), frame(0x80, hex('c9 c9 07 00')), close(1000)],
      told: ['ping 1 70', 'text "Hello"', 'peer closes 1000 ""', 'over 1000 clean'],
      answered: ['pong 1 70', 'text "Hello"', 'close 1000'],
    },
    refused(heading, 'no deflate stream', 1007, [frame(0xc1, hex('ff ff ff ff'))], [], { deflate: noTakeover }),
    refused(heading, 'a stream with a fault within', 1007, [frame(0xc2, Buffer.concat([deflated('Hello'), hex('07 ff ff ff')]))], [], {
      deflate: noTakeover,
    }),
    refused(heading, 'text that is not UTF-8 once it is inflated', 1007, compressed(Text, hex('c0 80')), [], { deflate: noTakeover }),
    refused(heading, 'a bomb', 1009, [frame(0xc2, bomb)], [], { deflate: noTakeover, limits: { maxMessageSize: 100_000 } }),
    refused(heading, 'a bomb in fragments', 1009, compressed(Binary, Buffer.alloc(1_000_000), 100), [], {
      deflate: noTakeover,
      limits: { maxMessageSize: 100_000 },
    }),
    refused(heading, 'more announced than could be inflated', 1009, [frame(0xc2, '', { declared: 17n << 20n })], [], {
      deflate: noTakeover,
      failsAt: 10,
    }),
    ...rsv1Misplaced.map(({ name, frames }) => refused(heading, `RSV1 on ${name}`, 1002, frames, [], { deflate: noTakeover })),
    refused(heading, 'RSV2 beside RSV1', 1002, [frame(0xe1, hex('00'))], [], { deflate: noTakeover, failsAt: 2 }),
    refused(heading, 'RSV1, and nothing was agreed on', 1002, [frame(0xc1, hex('f2 48 cd c9 c9 07 00'))]),
  )
  return cases
}

function parameterCases(): WebSocketCase[] {
  const cases: WebSocketCase[] = []
  const words = 'the quick brown fox jumps over the lazy dog, and '.repeat(40)
  for (const bits of [8, 9, 10, 12, 15]) {
    for (const keeps of [true, false]) {
      const deflate = { ...(keeps ? takeover : noTakeover), serverMaxWindowBits: bits, clientMaxWindowBits: bits }
      const messages = Array.from({ length: 4 }, (_, i) => `${i} ${words}`)
      cases.push(
        echoed(
          `windows of ${bits} bits, ${keeps ? 'a' : 'no'} context kept`,
          messages.flatMap((message) => compressed(Opcode.Text, message, Infinity, Math.max(9, bits))),
          messages,
          deflate,
          settings,
        ),
      )
    }
  }
  // RFC 7692 §7.2.3.2: the second message refers to the first.
  cases.push(
    echoed(
      'a message that refers to the one before',
      [frame(0xc1, hex('f2 48 cd c9 c9 07 00')), frame(0xc1, hex('f2 00 11 00 00'))],
      ['Hello', 'Hello'],
      takeover,
      settings,
    ),
    refused(
      settings,
      'a message that refers to one that was forgotten',
      1007,
      [frame(0xc1, hex('f2 48 cd c9 c9 07 00')), frame(0xc1, hex('f2 00 11 00 00'))],
      ['text "Hello"'],
      {
        deflate: noTakeover,
      },
    ),
    echoed(
      'one side keeps a context, the other does not',
      [...compressed(Opcode.Text, words), ...compressed(Opcode.Text, words)],
      [words, words],
      { ...takeover, serverNoContextTakeover: true },
      settings,
    ),
  )
  return cases
}

/** Chapters 12 and 13. */
export const deflateChapters: readonly WebSocketCase[] = [...compressionCases(), ...parameterCases()]
