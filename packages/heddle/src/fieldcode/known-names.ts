import type { Entry } from './entry.ts'

/** How the encoder treats a field. */
export const Treatment = {
  /** As a literal that enters the table. */
  Indexed: 0,
  /** Its values are too seldom repeated to be worth a place in the table. */
  Literal: 1,
  /** Length of content: a literal, and left out where a message has none. */
  Length: 2,
  DateLine: 3,
  /** RFC 9113 §8.2.2: TE says "trailers" or is left out. */
  Te: 4,
  /** Of an HTTP/1.1 connection, or said by a pseudo-header field: left out. */
  Dropped: 5,
} as const
export type Treatment = (typeof Treatment)[keyof typeof Treatment]

/** What the encoder knows of a name. */
export interface KnownName {
  /** The name's first index in the static table; -1: it is not there. */
  readonly index: number
  /** Indices of its values there. */
  readonly values: ReadonlyMap<string, number>
  readonly treatment: Treatment
}

const literals = [
  ':path',
  'age',
  'content-range',
  'etag',
  'if-modified-since',
  'if-none-match',
  'last-modified',
  'location',
  'range',
  'referer',
  'set-cookie',
  'traceparent',
  'x-request-id',
]
const treatments: ReadonlyMap<string, Treatment> = new Map<string, Treatment>([
  ...literals.map((name) => [name, Treatment.Literal] as const),
  ['content-length', Treatment.Length],
  ['date', Treatment.DateLine],
  ['te', Treatment.Te],
  ['host', Treatment.Dropped],
  ['connection', Treatment.Dropped],
  ['keep-alive', Treatment.Dropped],
  ['proxy-connection', Treatment.Dropped],
  ['transfer-encoding', Treatment.Dropped],
  ['upgrade', Treatment.Dropped],
  ['http2-settings', Treatment.Dropped],
])

/** Names of a static table by what they are, and those that are treated in a way of their own. */
export type KnownNames = ReadonlyMap<string, KnownName>

/** What an encoder knows with this static table; places without an entry do not count. */
export function knownNamesOf(staticTable: readonly (Entry | undefined)[]): KnownNames {
  const names = new Map<string, { index: number; values: Map<string, number>; treatment: Treatment }>()
  const known = (name: string, index: number): { values: Map<string, number> } => {
    let facts = names.get(name)
    if (facts === undefined) {
      facts = { index, values: new Map(), treatment: treatments.get(name) ?? Treatment.Indexed }
      names.set(name, facts)
    }
    return facts
  }
  for (const [index, entry] of staticTable.entries()) {
    if (entry === undefined) continue
    const { values } = known(entry.name, index)
    if (entry.value !== '') values.set(entry.value, index)
  }
  for (const name of treatments.keys()) known(name, -1)
  return names
}
