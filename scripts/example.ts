/** `npm run example -- NAME [ARGUMENT…]`: runs `examples/NAME.ts` on the sources, with the Node that `npm ci` brought. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow, root } from './sources.ts'

const [wanted, ...words] = process.argv.slice(2)
const names = filesBelow('examples', (path) => path.endsWith('.ts')).map((path) => path.slice('examples/'.length, -'.ts'.length))
const name = wanted?.replace(/^examples\//, '').replace(/\.ts$/, '')

/** What an example shows, by the first sentence of its first line. */
function about(example: string): string {
  const [line = ''] = readFileSync(join(root, 'examples', `${example}.ts`), 'utf8').split('\n')
  return line.slice('// '.length).split(/: `|\. |\.$/)[0] ?? ''
}

if (name === undefined || !names.includes(name)) {
  const asked = name === undefined || name === '--help'
  const width = Math.max(...names.map((known) => known.length))
  const list = names.map((known) => `  ${known.padEnd(width)}  ${about(known)}`).join('\n')
  ;(asked ? console.log : console.error)(`${asked ? '' : `no example is called ${name}\n`}npm run example -- NAME [ARGUMENT…]\n${list}`)
  process.exitCode = asked ? 0 : 2
} else {
  const child = spawn(process.execPath, ['--conditions=@heddle/source', join(root, 'examples', `${name}.ts`), ...words], {
    stdio: 'inherit',
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  child.on('exit', (code) => (process.exitCode = code ?? 1))
}
