/** What becomes of a machine that lacks a program: it is installed, or the run ends and says why. Nothing is skipped. */
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { run, type Ran } from '../src/process.ts'

const asking = `
import { tool } from '${new URL('../src/tools.ts', import.meta.url).href}'
for (const name of process.argv.slice(1)) console.log(tool(name))
`

class Machine {
  readonly folder: string
  readonly bin: string

  constructor(t: TestContext) {
    this.folder = mkdtempSync(join(tmpdir(), 'heddle-machine-'))
    this.bin = join(this.folder, 'bin')
    mkdirSync(this.bin)
    symlinkSync('/bin/sh', join(this.bin, 'sh'))
    t.after(() => rmSync(this.folder, { recursive: true }))
  }

  has(name: string, script: string): void {
    writeFileSync(join(this.bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(this.bin, name), 0o755)
  }

  asksFor(...tools: string[]): Promise<Ran> {
    const env = { PATH: this.bin, FOLDER: this.folder, HEDDLE_INTEROP_TOOLS: join(this.folder, 'tools') }
    return run(process.execPath, ['--input-type=module-typescript', '--eval', asking, ...tools], { env })
  }

  get wasUpdated(): boolean {
    return existsSync(join(this.folder, 'updated'))
  }
}

/** An apt that has one program to give, once its lists are there. */
const apt = `
case "$*" in
  *update*) : > "$FOLDER/updated" ;;
  *install*) [ -e "$FOLDER/updated" ] || exit 100; while read -r line; do echo "$line"; done < "$FOLDER/curl" > "\${0%/*}/curl"; /bin/chmod 755 "\${0%/*}/curl" ;;
esac`

test('a program that is there is used', async (t) => {
  const machine = new Machine(t)
  machine.has('curl', 'echo curl 9, with HTTP2')
  assert.deepEqual(await machine.asksFor('curl', 'curl'), { status: 0, stdout: `${machine.bin}/curl\n`.repeat(2), stderr: '' })
})

test('a program that is not there is installed, lists first', async (t) => {
  const machine = new Machine(t)
  machine.has('apt-get', apt)
  machine.has('sudo', 'shift; exec "$@"')
  writeFileSync(join(machine.folder, 'curl'), '#!/bin/sh\necho curl 9, with HTTP2\n')
  const { status, stdout, stderr } = await machine.asksFor('curl')
  assert.deepEqual([status, stdout, stderr], [0, `${machine.bin}/curl\n`, 'interop: installing curl\n'])
  assert.ok(machine.wasUpdated)
})

test('a program that does too little, and nothing better to be had', async (t) => {
  const machine = new Machine(t)
  machine.has('apt-get', apt)
  machine.has('sudo', 'shift; exec "$@"')
  writeFileSync(join(machine.folder, 'curl'), '#!/bin/sh\necho curl 1, with gopher\n')
  const { status, stderr } = await machine.asksFor('curl')
  assert.equal(status, 1)
  assert.match(stderr, /Error: interop: apt's curl brings no curl that can be used; install one by hand/)
})

test('an apt that fails', async (t) => {
  const machine = new Machine(t)
  machine.has('apt-get', 'exit 100')
  machine.has('sudo', 'shift; exec "$@"')
  const { status, stderr } = await machine.asksFor('nghttp')
  assert.equal(status, 1)
  assert.match(stderr, /Error: interop: .*apt-get -qq .* update: ended with 100/)
})

test('a machine without apt', async (t) => {
  const { status, stderr } = await new Machine(t).asksFor('chromium')
  assert.equal(status, 1)
  assert.match(stderr, /Error: interop: chromium is not installed, and there is no apt-get to install it with/)
})

test('a Python without venv, and packages that cannot be had', async (t) => {
  const machine = new Machine(t)
  machine.has('apt-get', ': > "$FOLDER/${*##* }"')
  machine.has('sudo', 'shift; exec "$@"')
  // Asked for its modules it has none; told to make a place, it makes one whose pip fails.
  machine.has(
    'python3',
    `case "$*" in
  --version) echo Python 9 ;;
  -c*) exit 1 ;;
  *venv*) /bin/mkdir -p "$3/bin"; echo '#!/bin/sh
exit 7' > "$3/bin/python"; /bin/chmod 755 "$3/bin/python" ;;
esac`,
  )
  for (let i = 0; i < 2; i++) {
    const { status, stderr } = await machine.asksFor('aioquic')
    assert.equal(status, 1)
    assert.match(stderr, /Error: interop: \S+\/bin\/python -m pip install .* --requirement \S+requirements.txt: ended with 7/)
    assert.match(stderr, /interop: installing python3-venv/)
  }
  assert.ok(existsSync(join(machine.folder, 'python3-venv')))
})
