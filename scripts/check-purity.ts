/**
 * Engines read no clock, no socket and no randomness: time and randomness are parameters, so the
 * seeded world can run them. This lists every place in an engine folder that breaks the rule.
 */
import { codeOnly, filesBelow, importsOf, textOf } from './sources.ts'

const engines = ['bytes', 'http', 'fieldcode', 'h1', 'hpack', 'h2', 'qpack', 'quic', 'h3', 'ws']
const forbidden: readonly (readonly [RegExp, string])[] = [
  [/\bDate\b/, 'Date'],
  [/\bperformance\b/, 'performance'],
  [/\bset(?:Timeout|Interval|Immediate)\b/, 'a timer'],
  [/\bqueueMicrotask\b|\bprocess\b/, 'the event loop'],
  // The global crypto by what it offers: QUIC has CRYPTO frames, and its cryptography is handed in.
  [/\bMath\.random\b|\bgetRandomValues\b|\brandomUUID\b|\bsubtle\b|\bglobalThis\b/, 'randomness'],
  [/\bconsole\b/, 'console'],
  [/\bawait\b|\basync\b|\bPromise\b/, 'asynchrony'],
]

/** Every impurity of one engine file, as `path:line: message`. */
export function purityFaults(path: string, source: string): string[] {
  const faults: string[] = []
  for (const { line, target } of importsOf(source)) {
    if (target.startsWith('node:')) faults.push(`${path}:${line}: engines import nothing of Node's (${target})`)
  }
  const lines = codeOnly(source).split('\n')
  for (const [index, line] of lines.entries()) {
    for (const [pattern, what] of forbidden) {
      if (pattern.test(line)) faults.push(`${path}:${index + 1}: engines do not use ${what}`)
    }
  }
  return faults
}

if (import.meta.main) {
  const files = engines.flatMap((folder) => {
    try {
      return filesBelow(
        `packages/heddle/src/${folder}`,
        (path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.includes('/testing/'),
      )
    } catch {
      return []
    }
  })
  const faults = files.flatMap((path) => purityFaults(path, textOf(path)))
  for (const fault of faults) console.error(fault)
  console.log(`check-purity: ${files.length} files, ${faults.length} faults`)
  process.exitCode = faults.length > 0 ? 1 : 0
}
