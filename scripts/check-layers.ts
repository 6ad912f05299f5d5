/**
 * Who may import whom. Inside `heddle`, a folder imports the folders below it, by their `index.ts`
 * only; siblings never import each other. Gateway and load see nothing but heddle's public entries.
 */
import { dirname, join, normalize } from 'node:path'
import { filesBelow, importsOf, textOf } from './sources.ts'

const below: Readonly<Record<string, readonly string[]>> = {
  bytes: [],
  http: ['bytes'],
  fieldcode: ['bytes', 'http'],
  h1: ['bytes', 'http'],
  hpack: ['bytes', 'http', 'fieldcode'],
  qpack: ['bytes', 'http', 'fieldcode'],
  h2: ['bytes', 'http', 'fieldcode', 'hpack'],
  native: ['bytes', 'http'],
  quic: ['bytes', 'http', 'native'],
  h3: ['bytes', 'http', 'fieldcode', 'qpack', 'quic'],
  ws: ['bytes', 'http'],
  io: ['bytes', 'http', 'native', 'h1', 'h2', 'quic', 'h3', 'ws'],
  web: ['bytes', 'http'],
  client: ['bytes', 'http', 'h1', 'h2', 'h3', 'ws', 'io', 'web'],
  server: ['bytes', 'http', 'h1', 'h2', 'h3', 'quic', 'ws', 'io', 'web'],
  websocket: ['bytes', 'http', 'h1', 'h2', 'h3', 'ws', 'io', 'web', 'client', 'server', 'node'],
  node: ['http', 'server'],
  undici: ['http', 'io', 'web', 'client'],
  rpc: ['http', 'client'],
  testing: ['bytes', 'http', 'native', 'h1', 'h2', 'h3', 'quic', 'ws', 'io', 'web', 'client', 'server', 'websocket'],
}
const sources = 'packages/heddle/src/'

/** Everything wrong with one file's imports, as `path:line: message`. */
export function layerFaults(path: string, source: string): string[] {
  const faults: string[] = []
  const isTest = path.endsWith('.test.ts')
  for (const { line, target } of importsOf(source)) {
    const fault = path.startsWith(sources) ? heddleFault(path, target, isTest) : strangerFault(path, target, isTest)
    if (fault !== undefined) faults.push(`${path}:${line}: ${fault}`)
  }
  return faults
}

function heddleFault(path: string, target: string, isTest: boolean): string | undefined {
  if (!target.startsWith('.')) {
    if (target.startsWith('node:') || (isTest && target === 'fast-check')) return undefined
    return `'${target}': heddle has no runtime dependency`
  }
  const [from] = path.slice(sources.length).split('/') as [string]
  const resolved = normalize(join(dirname(path), target))
  if (!resolved.startsWith(sources)) return isTest ? undefined : `'${target}' leaves the package's sources`
  const [to, ...rest] = resolved.slice(sources.length).split('/') as [string, ...string[]]
  if (from === to || from === 'index.ts') return undefined
  if (rest.join('/') !== 'index.ts' && !(isTest && to === 'testing')) return `'${target}': outsiders import ${to}/index.ts only`
  const allowed = below[from]
  if (allowed === undefined) return `folder ${from}/ is unknown: give it a place in scripts/check-layers.ts`
  // A test may build its world from testing/, whatever it tests.
  if (allowed.includes(to) || (isTest && to === 'testing')) return undefined
  return `${from}/ may not import ${to}/ (it may import: ${allowed.join(', ') || 'nothing'})`
}

function strangerFault(path: string, target: string, isTest: boolean): string | undefined {
  const shipped = /^packages\/heddle-(gateway|load)\/src\//.test(path)
  if (!shipped) return undefined
  if (target.includes('packages/heddle/') || /^heddle\/(src|dist)\b/.test(target)) return `'${target}': only heddle's public entries`
  if (!isTest && target.startsWith('.') && !normalize(join(dirname(path), target)).startsWith(path.split('/src/')[0] as string)) {
    return `'${target}' leaves the package`
  }
  return undefined
}

if (import.meta.main) {
  const files = filesBelow('packages', (path) => path.endsWith('.ts') && path.includes('/src/'))
  const faults = files.flatMap((path) => layerFaults(path, textOf(path)))
  for (const fault of faults) console.error(fault)
  console.log(`check-layers: ${files.length} files, ${faults.length} faults`)
  process.exitCode = faults.length > 0 ? 1 : 0
}
