import { Opcode } from '../../ws/index.ts'
import { close, echoes, fragments, frame, hex, ping, pieces, refused, text, utf8, type WebSocketCase } from './case.ts'

const heading = '6 UTF-8'

/** Well-formed sequences at the borders of their forms (RFC 3629 §4). */
const valid: readonly (readonly [string, string])[] = [
  ['the least of one octet', '00'],
  ['the largest of one octet', '7f'],
  ['the least of two octets', 'c280'],
  ['the largest of two octets', 'dfbf'],
  ['the least of three octets', 'e0a080'],
  ['the last before the surrogates', 'ed9fbf'],
  ['the first behind the surrogates', 'ee8080'],
  ['the replacement character', 'efbfbd'],
  ['U+FFFE, which is no character', 'efbfbe'],
  ['the largest of three octets', 'efbfbf'],
  ['the least of four octets', 'f0908080'],
  ['one of four octets', 'f09f9982'],
  ['the largest of all', 'f48fbfbf'],
  ['a byte order mark', 'efbbbf'],
  ['words', '48656c6c6f2dc2b540c39fc3b6c3a4c3bcc3a0c3a12d5554462d382121'],
]

/** Octets that are no text, and how many of them it takes to know. */
const invalid: readonly (readonly [name: string, octets: string, seenAt: number])[] = [
  ['a continuation alone', '80', 1],
  ['the last continuation alone', 'bf', 1],
  ['continuations behind text', '41 80 80', 2],
  ['C0, which never occurs', 'c080', 1],
  ['C1, which never occurs', 'c1bf', 1],
  ['F5, which never occurs', 'f5808080', 1],
  ['FE, which never occurs', 'fe', 1],
  ['FF, which never occurs', 'ff', 1],
  ['an overlong form of three octets', 'e09fbf', 2],
  ['an overlong form of four octets', 'f08fbfbf', 2],
  ['the first surrogate', 'eda080', 2],
  ['the last surrogate', 'edbfbf', 2],
  ['a pair of surrogates', 'eda0bdedb880', 2],
  ['the first above U+10FFFF', 'f4908080', 2],
  ['two octets, the second missing', 'c241', 2],
  ['three octets, the third missing', 'e28241', 3],
  ['four octets, the fourth missing', 'f09f9941', 4],
  ['a sequence within a sequence', 'e2c280', 2],
  ['text, then U+110000, then text', 'cebae1bdb9cf83cebcceb5 f4908080 656469746564', 13],
]

/** Sequences that end too early, with the message. */
const cut = ['c2', 'e0', 'e0a0', 'e282', 'f0', 'f09f', 'f09f99', 'cebae1bdb9cf83cebcceb5ce']

function textCases(): WebSocketCase[] {
  const cases: WebSocketCase[] = []
  for (const [name, octets] of valid) {
    const bytes = hex(octets)
    const octetwise = fragments(Opcode.Text, ...pieces(bytes, 1))
    cases.push(echoes(heading, name, [text(bytes)], [bytes.toString()]))
    cases.push(echoes(heading, `${name}, in fragments of an octet`, octetwise, [bytes.toString()]))
    cases.push(
      echoes(
        heading,
        `${name}, within ASCII`,
        [text(Buffer.concat([utf8('0123456789abcdef'), bytes, utf8('xyz')]))],
        [`0123456789abcdef${bytes.toString()}xyz`],
      ),
    )
  }
  for (const [name, octets, seenAt] of invalid) {
    const bytes = hex(octets)
    cases.push(refused(heading, name, 1007, [text(bytes)]))
    cases.push(refused(heading, `${name}, behind ASCII`, 1007, [text(Buffer.concat([utf8('plain text in front'), bytes]))]))
    // A fragment is looked at as it comes: its end is not waited for.
    cases.push(refused(heading, `${name}, at once`, 1007, [frame(0x01, Buffer.concat([bytes, utf8('more')]))], [], { failsAt: 2 + seenAt }))
  }
  for (const octets of cut) {
    const bytes = hex(octets)
    cases.push(refused(heading, `${octets} at the end of a message`, 1007, [text(bytes)]))
    cases.push(refused(heading, `${octets} at the end of the last fragment`, 1007, fragments(Opcode.Text, 'a', bytes)))
    cases.push(refused(heading, `${octets}, and an empty last fragment`, 1007, fragments(Opcode.Text, bytes, '')))
  }
  const words = 'κόσμε, 世界, 🙂'
  const pingWithin: WebSocketCase = {
    heading,
    name: 'a Ping within a sequence',
    frames: [frame(0x01, hex('f09f')), ping(hex('ff')), frame(0x80, hex('9982')), close(1000)],
    told: ['ping 1 ff', 'text "🙂"', 'peer closes 1000 ""', 'over 1000 clean'],
    answered: ['pong 1 ff', 'text "🙂"', 'close 1000'],
  }
  cases.push(
    pingWithin,
    echoes(heading, 'a sequence does not go on in the next message', [text('é'), text('è')], ['é', 'è']),
    refused(heading, 'a sequence cut by the next message', 1007, [text('ok'), text(hex('c3')), text(hex('a9'))], ['text "ok"']),
    echoes(heading, 'octets that are no text are no matter in binary', [frame(0x82, hex('c0 ff fe 80'))], [hex('c0 ff fe 80')]),
    ...[1, 2, 3, 5].map((size) =>
      echoes(heading, `words in fragments of ${size}`, fragments(Opcode.Text, ...pieces(utf8(words), size)), [words]),
    ),
  )
  return cases
}

const closing = '7 closing'

function closingCases(): WebSocketCase[] {
  const answered = (name: string, sent: ReturnType<typeof close>, code: number, reason = ''): WebSocketCase => ({
    heading: closing,
    name,
    frames: [text('before'), sent, text('behind'), ping('behind'), close(1001)],
    told: ['text "before"', `peer closes ${code} ${JSON.stringify(reason)}`, `over ${code} clean`],
    answered: ['text "before"', code === 1005 ? 'close' : `close ${code}`],
  })
  const cases: WebSocketCase[] = [
    answered('without a code', close(), 1005),
    answered('with a reason', close(1000, 'Hello World!'), 1000, 'Hello World!'),
    answered('with the longest reason', close(1000, '*'.repeat(123)), 1000, '*'.repeat(123)),
    answered('with a reason that is not ASCII', close(1000, 'κόσμε 🙂'), 1000, 'κόσμε 🙂'),
    refused(closing, 'half a code', 1002, [frame(0x88, hex('03'))]),
    refused(closing, 'a reason of 124 octets', 1002, [close(1000, '*'.repeat(124))], [], { failsAt: 2 }),
    refused(closing, 'a reason that is no UTF-8', 1007, [close(1000, hex('cebae1bdb9cf83cebcceb5 f4908080'))]),
    refused(closing, 'a reason cut within a sequence', 1007, [close(1000, hex('e282'))]),
  ]
  for (const code of [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999]) {
    cases.push(answered(`code ${code}`, close(code), code))
  }
  for (const code of [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 32_768, 65_535]) {
    cases.push(refused(closing, `code ${code}`, 1002, [close(code)]))
  }
  return cases
}

/** Chapters 6 and 7. */
export const textChapters: readonly WebSocketCase[] = [...textCases(), ...closingCases()]
