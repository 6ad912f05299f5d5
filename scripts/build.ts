/** `npm run build`: makes `dist/` with JavaScript and types in every package that is published. */
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow, root } from './sources.ts'

// In the order of their dependencies: a later one reads the types of an earlier one's dist.
const published = ['heddle', 'heddle-gateway', 'heddle-load']

for (const name of published) {
  const folder = join(root, 'packages', name)
  rmSync(join(folder, 'dist'), { recursive: true, force: true })
  const { status } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', join(folder, 'tsconfig.build.json')], {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  if (status !== 0) {
    console.error(`build: ${name} has type errors`)
    process.exit(1)
  }
  // The compiler rewrites `.ts` specifiers in the JavaScript only; consumers' types want `.js` too.
  for (const path of filesBelow(`packages/${name}/dist`, (file) => file.endsWith('.d.ts'), true)) {
    const file = join(root, path)
    writeFileSync(file, readFileSync(file, 'utf8').replace(/((?:from|import\()\s*['"]\.[^'"\n]*)\.ts(['"])/g, '$1.js$2'))
  }
  const bin = join(folder, 'dist/bin.js')
  if (existsSync(bin)) chmodSync(bin, 0o755)
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  console.log(`build: packages/${name}/dist`)
}
