import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The workspace's root folder. */
export const root: string = fileURLToPath(new URL('..', import.meta.url))

/**
 * Every file below `folder` (relative to the root) that `keep` wants, relative to the root, sorted.
 * `built`: look into `dist` folders too.
 */
export function filesBelow(folder: string, keep: (path: string) => boolean, built = false): string[] {
  const found: string[] = []
  const walk = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.name === 'node_modules' || (entry.name === 'dist' && !built) || entry.name.startsWith('.')) continue
      const below = join(path, entry.name)
      if (entry.isDirectory()) walk(below)
      else if (keep(below)) found.push(relative(root, below))
    }
  }
  walk(join(root, folder))
  return found.toSorted()
}

/** The text of a file given relative to the root. */
export function textOf(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

/** `source` with comments and the contents of string literals blanked, line numbers kept. */
export function codeOnly(source: string): string {
  const blank = (text: string): string => text.replace(/[^\n]/g, ' ')
  return source.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g, (text) =>
    text.startsWith('/') ? blank(text) : text[0] + blank(text.slice(1, -1)) + text.at(-1),
  )
}

/** One `from '…'` or `import('…')` of a file. */
export interface Import {
  readonly line: number
  readonly target: string
  readonly typeOnly: boolean
}

/** All imports and re-exports of a source text. */
export function importsOf(source: string): Import[] {
  const imports: Import[] = []
  const withoutComments = source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/[^\n]*/gm, (text) => text.replace(/[^\n]/g, ' '))
  const pattern = /^\s*(import|export)\s+(type\s+)?(?:[^'"`;]*?\sfrom\s+)?'([^'\n]+)'|\bimport\('([^'\n]+)'\)/gm
  for (const match of withoutComments.matchAll(pattern)) {
    const line = withoutComments.slice(0, match.index + match[0].length).split('\n').length
    imports.push({ line, target: match[3] ?? (match[4] as string), typeOnly: match[2] !== undefined })
  }
  return imports
}
