/** `npm run example -- NAME [ARGUMENT…]`: runs `examples/NAME.ts` on the sources, with the Node that `npm ci` brought. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { filesBelow, root } from './sources.ts'

const [wanted, ...words] = process.argv.slice(2)
const names = filesBelow('examples', (path) => path.endsWith('.ts')).map((path) => path.slice('examples/'.length, -'.ts'.length))
const name = wanted?.replace(/^examples\//, '').replace(/\.ts$/, '')

if (name === undefined || !names.includes(name)) {
  console.error(
    `${name === undefined ? 'which example?' : `no example is called ${name}`}\nnpm run example -- NAME [ARGUMENT…]; there are ${names.join(', ')}`,
  )
  process.exitCode = 2
} else {
  const child = spawn(process.execPath, ['--conditions=@heddle/source', join(root, 'examples', `${name}.ts`), ...words], {
    stdio: 'inherit',
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  child.on('exit', (code) => (process.exitCode = code ?? 1))
}
