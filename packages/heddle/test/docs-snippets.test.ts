import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { makeAuthority, makeCertificate } from 'heddle/testing'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../../..')
const folder = mkdtempSync(join(tmpdir(), 'heddle-docs-'))
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction')
after(() => rmSync(folder, { recursive: true, force: true }))

// Frameworks that a snippet shows are no dependency of this workspace.
const strangers = /from '(express|koa|fastify|hono)'/

const snippets = ['README.md', 'packages/heddle/README.md', ...globSync('docs/*.md', { cwd: root })].flatMap((path) =>
  [...readFileSync(join(root, path), 'utf8').matchAll(/^```ts\n([^]*?)^```/gm)].map(([, code = ''], i) => ({
    name: `${path.replaceAll('/', '-').replace('.md', '')}-${i + 1}.ts`,
    path,
    code,
  })),
)

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text)
}

test('every snippet of the documentation has its imports and its types', { timeout: 120_000 }, async () => {
  const own = snippets.filter(({ code }) => !strangers.test(code))
  assert.ok(own.length >= 10, `${own.length} snippets`)
  for (const { name, code } of own) write(name, code)
  write('package.json', '{ "type": "module" }')
  const compilerOptions = {
    noEmit: true,
    noUnusedLocals: false,
    noUnusedParameters: false,
    isolatedDeclarations: false,
    declaration: false,
  }
  write('tsconfig.json', JSON.stringify({ extends: join(root, 'tsconfig.base.json'), compilerOptions, include: ['*.ts'] }))
  const compiler = join(root, 'node_modules/.bin', process.platform === 'win32' ? 'tsc.cmd' : 'tsc')
  const { stdout } = await run(compiler, ['-p', folder], { shell: process.platform === 'win32' }).catch(
    (error: { stdout: string }) => error,
  )
  assert.equal(stdout, '')
})

test('the servers of the documentation start', { timeout: 60_000 }, async () => {
  const authority = makeAuthority()
  for (const name of ['main', 'example']) {
    const { cert, key } = makeCertificate({ names: [`${name}.example.org`], ca: authority })
    write(`${name}.crt`, cert)
    write(`${name}.key`, key)
  }
  write('members-ca.crt', authority.cert)
  const servers = snippets.filter(({ path, code }) => basename(path) === 'server.md' && code.includes('await serve('))
  assert.ok(servers.length >= 2)
  for (const { name, code } of servers) {
    // No port of the machine that runs the tests is taken, and the server stops when it has come up.
    write(name, `${code.replace(/port: \d+/g, 'port: 0')}\nconsole.log('up', server.url)\nawait server.close()\n`)
    const { stdout } = await run(process.execPath, ['--conditions=@heddle/source', name], { cwd: folder })
    assert.match(stdout, /^up https?:\/\/localhost:\d+$/m, name)
  }
})
