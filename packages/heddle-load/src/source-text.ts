import { isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml'

/** A key or index on the way to a value. */
export type PathStep = string | number

/** A text in YAML or JSON (which is YAML), read: its value, and where each part of it stands. */
export class SourceText {
  /** Undefined when there are `errors`. */
  readonly value: unknown
  /** `file:line:column: message`. */
  readonly errors: readonly string[]
  readonly #file: string
  readonly #document: Document
  readonly #lines: LineCounter

  constructor(file: string, text: string) {
    this.#file = file
    this.#lines = new LineCounter()
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, logLevel: 'error' })
    const found = [...this.#document.errors, ...this.#document.warnings]
    const errors = found.map(({ pos, message }) => `${this.#at(pos[0])}: not valid YAML or JSON: ${message}`)
    if (errors.length === 0) {
      try {
        this.value = this.#document.toJS({ maxAliasCount: 1_000 }) as unknown
      } catch (error) {
        errors.push(`${file}: ${(error as Error).message}`)
      }
    }
    this.errors = errors
  }

  /** `file:3:7: requests[0].url`: of the value at `path`, or its key; of the nearest one around it if there is none. */
  place(path: readonly PathStep[], atKey: boolean): string {
    let node: unknown = this.#document.contents
    let offset = isNode(node) ? (node.range?.[0] ?? 0) : 0
    for (const [depth, step] of path.entries()) {
      if (isSeq(node)) node = node.items[step as number]
      else if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && key.value === step)
        node = atKey && depth === path.length - 1 ? pair?.key : pair?.value
      } else break
      if (!isNode(node)) break
      offset = node.range?.[0] ?? offset
    }
    const words = pathInWords(path)
    return `${this.#at(offset)}${words === '' ? '' : `: ${words}`}`
  }

  #at(offset: number): string {
    const { line, col } = this.#lines.linePos(offset)
    return line === 0 ? this.#file : `${this.#file}:${line}:${col}`
  }
}

/** `['requests', 2, 'url']` → `requests[2].url`. */
function pathInWords(path: readonly PathStep[]): string {
  let words = ''
  for (const step of path) {
    if (typeof step === 'number') words += `[${step}]`
    else words += words === '' ? step : `.${step}`
  }
  return words
}
