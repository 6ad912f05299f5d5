import assert from 'node:assert/strict'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Response, serve, type Server } from 'heddle/server'
import { main } from './cli.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-cli-'))
const running = new Set<Program>()
after(() => {
  // Only after a failure is there one left.
  for (const { child } of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true })
})
const bin = fileURLToPath(new URL('./bin.ts', import.meta.url))

/** The program, running. */
class Program {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  readonly ended: Promise<number | string | null>
  output = ''
  errors = ''
  readonly #waiting = new Set<() => void>()

  /** `detached`: in a process group of its own, as a shell starts it. */
  constructor(args: readonly string[], detached = false) {
    running.add(this)
    this.child = spawn(process.execPath, ['--conditions=@heddle/source', bin, ...args], { stdio: ['ignore', 'pipe', 'pipe'], detached })
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.output += text
      this.#wake()
    })
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text
      this.#wake()
    })
    this.ended = new Promise((resolve) => {
      this.child.on('close', (code, signal) => {
        running.delete(this)
        this.#wake()
        resolve(signal ?? code)
      })
    })
  }

  /** The first match of `pattern` in what it prints, from `from` on. */
  async says(pattern: RegExp, from = 0): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec((this.output + this.errors).slice(from))
      if (match !== null) return match
      if (this.child.exitCode !== null) throw new Error(`it ended without ${pattern}:\n${this.output}${this.errors}`)
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }
}

function file(name: string, content: string): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

async function finished(args: readonly string[]): Promise<{ status: unknown; output: string; errors: string }> {
  const program = new Program(args)
  const status = await program.ended
  return { status, output: program.output, errors: program.errors }
}

const valid = 'listeners: [{ name: web, host: 127.0.0.1, port: 0 }]\nroutes: [{ name: all, cluster: app }]\n'

describe('the program', () => {
  test('says how it is used', async () => {
    const { status, output } = await finished(['--help'])
    assert.equal(status, 0)
    assert.match(output, /^Usage: heddle-gateway \[run\] -c FILE/)
  })

  test('says its version', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
    assert.deepEqual(await finished(['--version']), { status: 0, output: `${version}\n`, errors: '' })
  })

  const misuses: readonly [readonly string[], string][] = [
    [[], 'what shall it do?'],
    [['run'], '-c FILE is missing'],
    [['validate'], '-c FILE is missing'],
    [['serve'], 'there is no command serve'],
    [['run', 'x', '-c', 'y'], 'there is one word too many: x'],
    [['--nope'], "unknown option '--nope'"],
    [['demo', '--port', 'http'], '--port wants a port from 0 to 65535, not http'],
    [['demo', '--admin-port', '70000'], '--admin-port wants a port from 0 to 65535, not 70000'],
    [['demo', '-c', 'x'], 'the demo takes no configuration'],
    [['run', '-c', 'x', '--port', '1'], '--port and --admin-port are for the demo'],
    [['-c', 'a', '-c', 'b'], '-c is given twice'],
    [['validate', '--config', 'a', '-c', 'a'], '-c is given twice'],
    [['demo', '--port', '1', '--port=2'], '--port is given twice'],
    [['demo', '--port', '8081', '--admin-port', '8081'], '--port and --admin-port are both 8081; they must differ'],
    [['demo', '--port', '9990'], '--port and --admin-port (its default) are both 9990; they must differ'],
    [['demo', '--admin-port', '8080'], '--port (its default) and --admin-port are both 8080; they must differ'],
  ]
  for (const [args, message] of misuses) {
    test(`does not accept: ${args.join(' ') || '(nothing)'}`, async (context) => {
      const printed = context.mock.method(console, 'error', () => {})
      assert.equal(await main(args), 2)
      const text = String(printed.mock.calls[0]?.arguments[0])
      assert.equal(text.split('\n')[0], `heddle-gateway: ${message}`)
      assert.match(text, /Usage:/)
    })
  }

  test('exits with 2 for bad usage', async () => {
    const { status, output, errors } = await finished(['serve'])
    assert.equal(status, 2)
    assert.equal(output, '')
    assert.match(errors, /^heddle-gateway: there is no command serve\n\nUsage:/)
  })

  test('validates', async () => {
    const good = file('good.yaml', `${valid}clusters: [{ name: app, endpoints: [127.0.0.1:1] }]\n`)
    assert.deepEqual(await finished(['validate', '-c', good]), { status: 0, output: `OK: ${good}\n`, errors: '' })
    const bad = file('bad.yaml', `${valid}clusters: [{ name: ap, endpoints: [127.0.0.1] }]\n`)
    assert.deepEqual(await finished(['validate', '-c', bad]), {
      status: 1,
      output: '',
      errors: `${bad}:2:32: routes[0].cluster: no cluster has the name "app"; did you mean "ap"?
${bad}:3:36: clusters[0].endpoints[0]: found "127.0.0.1", expected host:port, or a mapping of host and port
`,
    })
  })

  test('tells what is doubtful on standard error, and goes on', async () => {
    const hidden = valid.replace('cluster: app }', 'cluster: app }, { name: more, cluster: app }')
    const doubtful = file('doubtful.yaml', `${hidden}clusters: [{ name: app, endpoints: [127.0.0.1:1] }, { name: b, endpoints: [b:1] }]\n`)
    const warnings = `${doubtful}:2:47: warning: routes[1].name: is never reached: all that it matches is taken by routes[0], "all", before it
${doubtful}:3:61: warning: clusters[1].name: no route leads to the cluster "b"
`
    assert.deepEqual(await finished(['validate', '-c', doubtful]), { status: 0, output: `OK: ${doubtful}\n`, errors: warnings })
    const program = new Program(['-c', doubtful])
    await program.says(/listener web on/)
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 0)
    assert.ok(program.errors.startsWith(warnings), program.errors)
  })

  test('says when a port is taken', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    const config = file('taken.yaml', `${valid.replace('port: 0', `port: ${port}`)}clusters: [{ name: app, endpoints: [127.0.0.1:1] }]\n`)
    const message = `heddle-gateway: listener web cannot listen on 127.0.0.1:${port}: another program listens there\n`
    assert.deepEqual(await finished(['-c', config]), { status: 1, output: '', errors: message })
    const demo = await finished(['demo', '--port', String(port), '--admin-port', '0'])
    assert.equal(demo.status, 1)
    assert.match(
      demo.errors,
      new RegExp(`listener demo cannot listen.*\nOther ports: node .*bin\\.ts demo --port (?:${port + 1}|65534) --admin-port 0\n$`),
    )
    await new Promise((resolve) => taken.close(resolve))
  })
})

async function slowOrigin(): Promise<{ origin: Server; arrived: Promise<void>; release: () => void }> {
  const arrived = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const origin = await serve({
    hostname: '127.0.0.1',
    fetch: async (request) => {
      if (!request.url.endsWith('/slow')) return new Response('quick')
      arrived.resolve()
      await release.promise
      return new Response('late')
    },
  })
  return { origin, arrived: arrived.promise, release: release.resolve }
}

describe('the running program', { concurrency: 2 }, () => {
  test('drains at SIGTERM, and exits with 0', async () => {
    const { origin, arrived, release } = await slowOrigin()
    const program = new Program(['-c', file('drain.yaml', `${valid}clusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]\n`)])
    const [, url] = await program.says(/listener web on (\S+)\n/)
    const answer = fetch(`${url}/slow`).then((response) => response.text())
    await arrived
    program.child.kill('SIGTERM')
    await program.says(/draining, at most 30 s; a second signal ends at once/)
    await assert.rejects(fetch(`${url}/`))
    release()
    assert.equal(await answer, 'late')
    assert.equal(await program.ended, 0)
    await origin.close({ deadline: 0 })
  })

  test('ends at once at a second signal', async () => {
    const { origin, arrived } = await slowOrigin()
    const program = new Program(['-c', file('twice.yaml', `${valid}clusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]\n`)])
    const [, url] = await program.says(/listener web on (\S+)\n/)
    const answer = fetch(`${url}/slow`)
    const cut = assert.rejects(answer)
    await arrived
    program.child.kill('SIGINT')
    await program.says(/draining/)
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 1)
    await cut
    await origin.close({ deadline: 0 })
  })

  test('drains its workers too when the whole group is signalled, as Ctrl-C does', async () => {
    const { origin, arrived, release } = await slowOrigin()
    const config = `workers: 2\n${valid}clusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]\n`
    const program = new Program(['-c', file('workers.yaml', config)], true)
    const [, url] = await program.says(/listener web on (\S+)\n/)
    const [, first, second] = await program.says(/2 workers: (\d+), (\d+)\n/)
    const answer = fetch(`${url}/slow`).then((response) => response.text())
    await arrived
    process.kill(-(program.child.pid as number), 'SIGINT')
    await program.says(/draining/)
    release()
    assert.equal(await answer, 'late')
    assert.equal(await program.ended, 0)
    for (const pid of [first, second]) assert.throws(() => process.kill(Number(pid), 0), { code: 'ESRCH' })
    assert.doesNotMatch(program.errors, /another one starts/)
    await origin.close({ deadline: 0 })
  })

  test('ends its workers at once at a second signal', async () => {
    const { origin, arrived } = await slowOrigin()
    const config = `workers: 2\n${valid}clusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]\n`
    const program = new Program(['-c', file('workers-twice.yaml', config)])
    const [, url] = await program.says(/listener web on (\S+)\n/)
    const cut = assert.rejects(fetch(`${url}/slow`))
    await arrived
    program.child.kill('SIGTERM')
    await program.says(/draining/)
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 1)
    await cut
    await origin.close({ deadline: 0 })
  })

  test('opens the access log anew at SIGHUP', async () => {
    const { origin } = await slowOrigin()
    const log = join(folder, 'rotated.log')
    const config = file(
      'log.yaml',
      `${valid}accessLog: { path: rotated.log }\nclusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]\n`,
    )
    const program = new Program(['-c', config])
    const [, url] = await program.says(/listener web on (\S+)\n/)
    const count = (path: string): number => {
      try {
        return readFileSync(path, 'latin1').split('\n').length - 1
      } catch {
        return 0
      }
    }
    await (await fetch(`${url}/one`)).text()
    while (count(log) < 1) await new Promise((resolve) => setTimeout(resolve, 20))
    renameSync(log, `${log}.1`)
    program.child.kill('SIGHUP')
    await (await fetch(`${url}/two`)).text()
    while (count(log) < 1) await new Promise((resolve) => setTimeout(resolve, 20))
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 0)
    assert.match(readFileSync(log, 'latin1'), /"path":"\/two"/)
    assert.equal(count(`${log}.1`), 1)
    await origin.close({ deadline: 0 })
  })

  test('reads its configuration again at SIGHUP, and keeps the old one if the new one cannot be', async () => {
    const { origin } = await slowOrigin()
    const route = (prefix: string, more = ''): string =>
      `${more}listeners: [{ name: web, host: 127.0.0.1, port: 0 }]\nroutes: [{ name: all, match: { pathPrefix: ${prefix} }, cluster: app }]\nclusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]\n`
    const path = file('again.yaml', route('/old'))
    const program = new Program(['-c', path])
    const [, url] = await program.says(/listener web on (\S+)\n/)
    const statuses = async (): Promise<number[]> => {
      const both = [await fetch(`${url}/old`), await fetch(`${url}/new`)]
      return Promise.all(both.map(async (response) => (await response.text(), response.status)))
    }
    assert.deepEqual(await statuses(), [200, 404])
    const change = async (text: string, says: RegExp): Promise<void> => {
      const heard = program.errors.length
      file('again.yaml', text)
      program.child.kill('SIGHUP')
      await program.says(says, heard)
    }
    await change('routes: [', /again\.yaml:1:\d+: .*\n[^]*was not taken; the configuration is what it was\n/)
    assert.deepEqual(await statuses(), [200, 404])
    await change(route('/new', 'workers: 2\n'), /workers cannot change while the gateway runs: it takes a restart\n.*was not taken/)
    assert.deepEqual(await statuses(), [200, 404])
    await change(route('/new'), /goes by \S+again\.yaml as it is now: 1 routes, 1 clusters\n/)
    assert.deepEqual(await statuses(), [404, 200])
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 0)
    await origin.close({ deadline: 0 })
  })

  test('of signals that come while the configuration is being changed none is lost', async () => {
    const { origin } = await slowOrigin()
    const text = (prefix: string): string =>
      `workers: 2\nlisteners: [{ name: web, host: 127.0.0.1, port: 0 }]\nroutes: [{ name: all, match: { pathPrefix: ${prefix} }, cluster: app }]\nclusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]\n`
    const path = file('twice.yaml', text('/zero'))
    const program = new Program(['-c', path])
    const [, url] = await program.says(/listener web on (\S+)\n/)
    const [, list] = await program.says(/2 workers: (.*)\n/)
    const pids = (list as string).split(', ').map(Number)
    // A worker that does not answer holds the first reload up.
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    file('twice.yaml', text('/one'))
    program.child.kill('SIGHUP')
    await new Promise((resolve) => setTimeout(resolve, 200))
    file('twice.yaml', text('/two'))
    program.child.kill('SIGHUP')
    await new Promise((resolve) => setTimeout(resolve, 200))
    for (const pid of pids) process.kill(pid, 'SIGCONT')
    await program.says(/goes by .*\n(?:.*\n)*.*goes by /)
    assert.doesNotMatch(program.errors, /not taken/)
    const response = await fetch(`${url}/two`)
    assert.equal(response.status, 200)
    await response.text()
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 0)
    await origin.close({ deadline: 0 })
  })

  test('logs to standard output, and what it has to say goes to standard error', async () => {
    const { origin } = await slowOrigin()
    const config = file(
      'stdout.yaml',
      `${valid}accessLog: { path: stdout }\nclusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]\n`,
    )
    const program = new Program(['-c', config])
    const [, url] = await program.says(/listener web on (\S+)\n/)
    for (let i = 0; i < 3; i++) await (await fetch(`${url}/${i}`)).text()
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 0)
    const paths = program.output
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { path: string }).path)
    assert.deepEqual(paths, ['/0', '/1', '/2'])
    await origin.close({ deadline: 0 })
  })
})

test('the demo shows a page, loses its origin, and gets it back', async () => {
  const program = new Program(['demo', '--port', '0', '--admin-port', '0'])
  const [, url, pid] = await program.says(/gateway {2}(\S+) .*process (\d+)\)/)
  const [, admin] = await program.says(/admin {4}(\S+)\n/)
  await program.says(/Ctrl-C stops the demo/)
  const columns = program.output.split('\n').flatMap((line) => /^ {2}(?:curl|kill) .*? {2,}(?=\S)/.exec(line)?.[0].length ?? [])
  assert.deepEqual([columns.length, new Set(columns).size], [9, 1], program.output)
  const page = await fetch(`${url}/`)
  assert.equal(page.status, 200)
  const html = await page.text()
  assert.match(html, /via 1\.1 heddle/)
  assert.ok(html.includes(`href="${admin}/"`), 'it links to the admin page')
  const echo = await fetch(`${url}/echo`, { method: 'POST', body: 'hello' })
  assert.equal(await echo.text(), 'hello')
  const heard = program.output.length
  process.kill(Number(pid), 'SIGKILL')
  await program.says(/The origin ended \(SIGKILL\); it is back in 5 s/, heard)
  const failed = await fetch(`${url}/`)
  assert.equal(failed.status, 502)
  assert.equal(failed.headers.get('heddle-reason'), 'connect_failed')
  await failed.arrayBuffer()
  await program.says(/The origin is back, process \d+\./, heard)
  const again = await fetch(`${url}/headers`)
  assert.equal(again.status, 200)
  assert.equal(((await again.json()) as { headers: Record<string, string> }).headers['via'], '1.1 heddle')
  program.child.kill('SIGINT')
  assert.equal(await program.ended, 0)
})
