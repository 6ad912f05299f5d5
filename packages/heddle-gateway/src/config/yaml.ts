import {
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type Node,
  type Pair,
} from 'yaml'
import type { PathStep } from './problem.ts'

/**
 * Aliases of one anchor, those that multiply through aliases of aliases counted as often as they do.
 * Far more than a file for people has, and far less than hurts.
 */
const maxAliasCount = 10_000

/** Something wrong or doubtful in the text; `offset` -1: in it as a whole. */
export interface YamlProblem {
  readonly offset: number
  readonly message: string
}

interface FoundProblem extends YamlProblem {
  /** What follows can be read as it is meant all the same. */
  readonly harmless: boolean
}

/** A text in YAML, read: its value, and where in the text each part of it is. */
export class YamlText {
  /** Undefined when there are `errors`, null for an empty text. */
  readonly value: unknown
  /** In the text's order, up to the first behind which the parser only guesses: what it says then is mostly a consequence. */
  readonly errors: readonly YamlProblem[]
  readonly warnings: readonly YamlProblem[]
  readonly #document: Document
  readonly #lines: LineCounter

  constructor(text: string) {
    this.#lines = new LineCounter()
    // A warning of the parser about odd keys would go to the console; such keys are unknown to us anyway.
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, merge: true, logLevel: 'error' })
    const { errors, warnings } = this.#document
    const tags = warnings.filter(({ code }) => code === 'TAG_RESOLVE_FAILED' || code === 'BAD_COLLECTION_TYPE')
    this.warnings = warnings.filter((warning) => !tags.includes(warning)).map(({ pos, message }) => ({ offset: pos[0], message }))
    const found: FoundProblem[] = [
      ...errors.map(({ code, pos, message }) => ({
        offset: pos[0],
        message: errorWords[code]?.(text.slice(...pos)) ?? notYaml(message, text.slice(...pos)),
        harmless: code === 'DUPLICATE_KEY' || code === 'TAG_RESOLVE_FAILED',
      })),
      ...tags.map(({ pos }) => ({ offset: pos[0], message: tagWords(text.slice(...pos)), harmless: true })),
      ...referenceProblems(this.#document).map((problem) => ({ ...problem, harmless: true })),
    ]
    if (found.length === 0) {
      try {
        this.value = this.#document.toJS({ maxAliasCount }) as unknown
      } catch {
        // References were checked before: what is left is their number.
        found.push({
          offset: -1,
          message: `has more than ${maxAliasCount} aliases of one anchor, or aliases of aliases that multiply to so many`,
          harmless: true,
        })
      }
    }
    found.sort((a, b) => a.offset - b.offset)
    const last = found.findIndex(({ harmless }) => !harmless)
    this.errors = last < 0 ? found : found.slice(0, last + 1)
  }

  /** Line and column, both from 1; 0 for the text as a whole. */
  place(offset: number): { line: number; column: number } {
    if (offset < 0) return { line: 0, column: 0 }
    const { line, col } = this.#lines.linePos(offset)
    return { line, column: col }
  }

  /** The offset of the value at `path`, or of its key; of the nearest mapping or list around it if it is missing. */
  offsetOf(path: readonly PathStep[], atKey: boolean): number {
    const document = this.#document
    let node: unknown = document.contents
    let offset = isNode(node) ? (node.range?.[0] ?? 0) : 0
    for (let depth = 0; depth < path.length; depth++) {
      const step = path[depth] as PathStep
      if (isAlias(node)) node = node.resolve(document)
      if (isSeq(node)) node = node.items[step as number]
      else if (isMap(node)) {
        const pair = pairOf(node, step, document)
        if (pair === undefined) return offset
        const useKey = (atKey && depth === path.length - 1) || !isNode(pair.value)
        node = useKey ? pair.key : pair.value
      } else return offset
      if (!isNode(node)) return offset
      offset = node.range?.[0] ?? offset
    }
    return offset
  }

  /** Whether the value of a key at the top is there to be an alias's. */
  isAnchored(key: PathStep): boolean {
    const { contents } = this.#document
    const value: unknown = isMap(contents) ? pairOf(contents, key, this.#document)?.value : undefined
    return (isMap(value) || isSeq(value) || isScalar(value)) && value.anchor !== undefined
  }
}

/** The parser's messages that speak of its own functions, or of tags, in words for people with a file. */
const errorWords: Readonly<Record<string, (source: string) => string>> = {
  MULTIPLE_DOCS: () => 'a second YAML document begins here, but a file is one configuration',
  TAG_RESOLVE_FAILED: tagWords,
  RESOURCE_EXHAUSTION: () => 'is nested too deep',
}

function tagWords(tag: string): string {
  return `the tag ${tag.trim()} means nothing here; leave it out`
}

/** `source`: what the parser points at. */
function notYaml(message: string, source: string): string {
  // "Unexpected flow-map-end token in YAML stream" names a class of the parser's, not what is in the file.
  const words = /^Unexpected [a-z-]+ (?:token|at node end|on same line)/.test(message) ? `unexpected ${firstWord(source)}` : message
  return `not valid YAML: ${words}`
}

function firstWord(source: string): string {
  const word = /^\S+/.exec(source)?.[0] ?? ''
  return word === '' ? 'white space' : JSON.stringify(word.length > 30 ? `${word.slice(0, 30)}…` : word)
}

/** Aliases without their anchor, or within it, and merges of what is no mapping. */
function referenceProblems(document: Document): YamlProblem[] {
  const problems: YamlProblem[] = []
  const anchors = new Map<string, Node>()
  const tell = (node: unknown, message: string): void => {
    problems.push({ offset: isNode(node) ? (node.range?.[0] ?? 0) : 0, message })
  }
  visit(document, {
    Node: (_, node, path) => {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.set(node.anchor, node)
        return
      }
      const target = anchors.get(node.source)
      if (target === undefined) tell(node, `there is no anchor &${node.source} before this alias`)
      else if (path.includes(target)) tell(node, `this alias is part of what its anchor &${node.source} stands for`)
    },
    Pair: (_, pair) => {
      if (!isMergeKey(pair)) return
      for (const source of mergeSources(pair, (name) => anchors.get(name))) {
        if (source !== undefined && !isMap(source)) tell(pair.key, '<< takes a mapping or a list of mappings')
      }
    },
  })
  return problems
}

/** What a `<<` merges; undefined where an alias has no anchor. */
function mergeSources(pair: Pair, anchor: (name: string) => Node | undefined): unknown[] {
  const resolved = (node: unknown): unknown => (isAlias(node) ? anchor(node.source) : node)
  const value = resolved(pair.value)
  return isSeq(value) ? value.items.map(resolved) : [value]
}

function isMergeKey({ key }: Pair): boolean {
  return isScalar(key) && typeof key.value === 'symbol' && key.value.description === '<<'
}

/** The pair of `map` with this key: its own, or the first that is merged into it. */
function pairOf(map: unknown, key: PathStep, document: Document): Pair | undefined {
  if (!isMap(map)) return undefined
  const pairs = map.items.filter((item) => isPair(item))
  const own = pairs.find((pair) => isScalar(pair.key) && pair.key.value === key)
  if (own !== undefined) return own
  for (const pair of pairs) {
    if (!isMergeKey(pair)) continue
    const value = isAlias(pair.value) ? pair.value.resolve(document) : pair.value
    for (const item of isSeq(value) ? value.items : [value]) {
      const found = pairOf(isAlias(item) ? item.resolve(document) : item, key, document)
      if (found !== undefined) return found
    }
  }
  return undefined
}
