import { Opcode } from '../../ws/index.ts'
import { binary, close, echoes, fragments, frame, messageLine, pieces, refused, sample, text, utf8, type WebSocketCase } from './case.ts'

const limits = '9 limits and performance'
const maxMessageSize = 1_000

function limitCases(): WebSocketCase[] {
  const small = { limits: { maxMessageSize } }
  const large = sample(262_144)
  const many = Array.from({ length: 1_000 }, (_, i) => utf8(`message ${i}`))
  return [
    echoes(limits, 'text of 256 KiB', [text(large)], [large.toString()]),
    echoes(limits, 'binary of 256 KiB', [binary(large)], [large]),
    echoes(limits, 'binary of 1 MiB', [binary(sample(1_048_576))], [sample(1_048_576)]),
    ...[64, 1_000, 65_536].flatMap((size) => [
      echoes(limits, `text of 256 KiB in fragments of ${size}`, fragments(Opcode.Text, ...pieces(large, size)), [large.toString()]),
      echoes(limits, `binary of 256 KiB in fragments of ${size}`, fragments(Opcode.Binary, ...pieces(large, size)), [large]),
    ]),
    echoes(limits, 'text of 256 KiB that is not ASCII', [text('世界'.repeat(43_690))], ['世界'.repeat(43_690)]),
    echoes(limits, 'a thousand messages', many.map(binary), many),
    echoes(limits, 'as large as may be', [binary(sample(maxMessageSize))], [sample(maxMessageSize)], small),
    echoes(
      limits,
      'as large as may be, in fragments',
      fragments(Opcode.Text, sample(600), sample(400)),
      [Buffer.concat([sample(600), sample(400)]).toString()],
      small,
    ),
    refused(limits, 'an octet more', 1009, [binary(sample(maxMessageSize + 1))], [], { ...small, failsAt: 4 }),
    refused(limits, 'an octet more, in fragments', 1009, fragments(Opcode.Binary, sample(600), sample(401)), [], small),
    refused(limits, 'an octet more, behind empty fragments', 1009, fragments(Opcode.Text, '', sample(maxMessageSize), '', 'x'), [], small),
    // What is announced is enough: nothing of it has come.
    refused(limits, '17 MiB announced', 1009, [frame(0x82, '', { declared: 17n << 20n })], [], { failsAt: 10 }),
    refused(limits, '2^53 + 1 announced', 1009, [frame(0x82, '', { declared: (1n << 53n) + 1n })], [], { failsAt: 10 }),
    refused(limits, '2^63 − 1 announced', 1009, [frame(0x81, '', { declared: (1n << 63n) - 1n })], [], { failsAt: 10 }),
    refused(limits, '17 MiB announced within a message', 1009, [frame(0x02, 'a'), frame(0x80, '', { declared: 17n << 20n })]),
    echoes(limits, 'as many fragments as may be', fragments(Opcode.Text, 'a', 'b', 'c', 'd'), ['abcd'], { limits: { maxFragments: 4 } }),
    refused(
      limits,
      'a fragment more',
      1009,
      [...fragments(Opcode.Text, 'a', 'b', 'c', 'd'), ...fragments(Opcode.Text, 'a', 'b', 'c', 'd', 'e')],
      ['text "abcd"'],
      {
        limits: { maxFragments: 4 },
      },
    ),
    refused(limits, 'empty fragments without end', 1009, [frame(0x01), ...Array.from({ length: 16_384 }, () => frame(0x00))]),
  ]
}

const automatic = '10 automatic fragmentation'

function automaticCases(): WebSocketCase[] {
  const cases: WebSocketCase[] = []
  for (const [length, fragmentSize] of [
    [65_536, 1_300],
    [10, 3],
    [9, 3],
    [3, 3],
    [0, 3],
    [70_000, 65_536],
  ] as const) {
    const payload = sample(length)
    const parts = pieces(payload, fragmentSize)
    cases.push({
      heading: automatic,
      name: `${length} in frames of ${fragmentSize}`,
      fragmentSize,
      frames: [binary(payload), close(1000)],
      told: [messageLine(payload), 'peer closes 1000 ""', 'over 1000 clean'],
      answered: [
        ...parts.map((part, i) => {
          const line = messageLine(part)
          const named = i === 0 ? line : line.replace('binary', 'continuation')
          return i === parts.length - 1 ? named : named.replace(' ', '… ')
        }),
        'close 1000',
      ],
    })
  }
  return cases
}

/** Chapters 9 and 10. */
export const sizeChapters: readonly WebSocketCase[] = [...limitCases(), ...automaticCases()]
