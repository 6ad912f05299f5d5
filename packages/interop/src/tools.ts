/**
 * The programs that the tests talk to. What is missing is installed: by apt, built from Go modules whose
 * versions and sums `go/` pins, or by pip as `python/` pins it. What cannot be had is an error that says so: no test is left out for it.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A program that a test needs. */
export type Tool =
  | 'curl'
  | 'nghttp'
  | 'h2load'
  | 'nginx'
  | 'chromium'
  | 'go'
  | 'h2spec'
  | 'h2specd'
  | 'peer'
  | 'websocket'
  | 'python'
  | 'aioquic'
  | 'gtlsclient'

/** Every one of them. */
export const tools: readonly Tool[] = [
  'curl',
  'nghttp',
  'h2load',
  'nginx',
  'chromium',
  'go',
  'h2spec',
  'h2specd',
  'peer',
  'websocket',
  'aioquic',
  'gtlsclient',
]

/** What is built here is kept here, out of version control; `HEDDLE_INTEROP_TOOLS` puts it elsewhere. */
const cache = process.env['HEDDLE_INTEROP_TOOLS'] ?? fileURLToPath(new URL('../.tools/', import.meta.url))
const goFolder = fileURLToPath(new URL('../go/', import.meta.url))
const pythonFolder = fileURLToPath(new URL('../python/', import.meta.url))

/** The oldest Go that builds what `go/` pins. */
const oldestGo = [1, 26] as const

const found = new Map<Tool, string>()

/** The path of `name`, which is installed first where it is missing. Call it at a file's top: it takes minutes the first time. */
export function tool(name: Tool): string {
  const known = found.get(name)
  if (known !== undefined) return known
  const path = exclusively(() => provide(name))
  found.set(name, path)
  return path
}

function provide(name: Tool): string {
  switch (name) {
    case 'curl':
      return fromApt('curl', 'curl', (version) => version.includes('HTTP2'))
    case 'nghttp':
    case 'h2load':
      return fromApt(name, 'nghttp2-client')
    case 'nginx':
    case 'chromium':
      return fromApt(name, name)
    case 'go':
      return provideGo()
    case 'h2spec':
    case 'h2specd':
      return built(name, 'h2spec', `github.com/summerwind/h2spec/cmd/${name}`)
    case 'gtlsclient':
      return fromApt(name, 'ngtcp2-client')
    case 'python':
      return fromApt('python3', 'python3')
    case 'aioquic':
      return pythonWith('requirements.txt')
    case 'peer':
    case 'websocket':
      return built(name, name, '.')
  }
}

function fromApt(program: string, aptPackage: string, good: (version: string) => boolean = () => true): string {
  const usable = (): string | undefined => {
    const path = which(program)
    return path !== undefined && good(versionOf(path)) ? path : undefined
  }
  const path = usable() ?? (apt(aptPackage), usable())
  if (path === undefined) throw new Error(`interop: apt's ${aptPackage} brings no ${program} that can be used; install one by hand`)
  return path
}

function provideGo(): string {
  const candidates = (): (string | undefined)[] => [
    which('go'),
    '/usr/local/go/bin/go',
    ...(existsSync('/usr/lib') ? readdirSync('/usr/lib') : [])
      .filter((entry) => entry.startsWith('go-'))
      .map((entry) => `/usr/lib/${entry}/bin/go`),
  ]
  const usable = (): string | undefined => candidates().find((path) => path !== undefined && existsSync(path) && isNewEnough(path))
  const path = usable() ?? (apt('golang-go'), usable())
  if (path === undefined) {
    throw new Error(
      `interop: Go ${oldestGo.join('.')} or newer is needed, and apt's golang-go is older; put one on the PATH or in /usr/local/go`,
    )
  }
  return path
}

function isNewEnough(go: string): boolean {
  const { stdout } = spawnSync(go, ['env', 'GOVERSION'], { encoding: 'utf8' })
  const [, major, minor] = /^go(\d+)\.(\d+)/.exec(stdout ?? '') ?? []
  return Number(major) > oldestGo[0] || (Number(major) === oldestGo[0] && Number(minor) >= oldestGo[1])
}

/** A program of the Go module in `go/FOLDER`, named after what it was built from, so that nothing stale is used. */
function built(program: string, folder: string, goPackage: string): string {
  const source = join(goFolder, folder)
  const sum = createHash('sha256')
  for (const entry of readdirSync(source).toSorted()) sum.update(`${entry}\n`).update(readFileSync(join(source, entry)))
  const path = join(cache, `${program}-${sum.digest('hex').slice(0, 16)}`)
  if (existsSync(path)) return path
  const go = found.get('go') ?? provideGo()
  console.error(`interop: building ${program}`)
  const { status, error } = spawnSync(go, ['build', '-trimpath', '-mod=readonly', '-o', path, goPackage], {
    cwd: source,
    env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false', GOWORK: 'off' },
    stdio: ['ignore', 'inherit', 'inherit'],
    timeout: 600_000,
  })
  if (status !== 0)
    throw new Error(`interop: ${program} cannot be built from ${source}: ${error?.message ?? `go build ended with ${status}`}`)
  return path
}

/** A Python that has what a file of `python/` lists, in a folder of its own, named after that list. */
function pythonWith(list: string): string {
  const base = found.get('python') ?? provide('python')
  const wanted = join(pythonFolder, list)
  const version = spawnSync(base, ['--version'], { encoding: 'utf8' }).stdout ?? ''
  const sum = createHash('sha256').update(version).update(readFileSync(wanted)).digest('hex').slice(0, 16)
  const place = join(cache, `python-${sum}`)
  const path = join(place, 'bin', 'python')
  const isWhole = join(place, 'is-whole')
  if (existsSync(isWhole)) return path
  console.error(`interop: installing what python/${list} lists`)
  rmSync(place, { recursive: true, force: true })
  // Debian has this module of Python's, and the pip in it, in a package of its own.
  if (spawnSync(base, ['-c', 'import ensurepip, venv']).status !== 0) apt('python3-venv')
  const steps = [
    [base, '-m', 'venv', place],
    [path, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary=:all:', '--requirement', wanted],
  ] as [string, ...string[]][]
  for (const [program, ...words] of steps) {
    const { status, error } = spawnSync(program, words, { stdio: ['ignore', 'ignore', 'inherit'], timeout: 600_000 })
    if (status !== 0) throw new Error(`interop: ${[program, ...words].join(' ')}: ${error?.message ?? `ended with ${status}`}`)
  }
  writeFileSync(isWhole, '')
  return path
}

function which(program: string): string | undefined {
  const { status, stdout } = spawnSync('sh', ['-c', 'command -v "$1"', 'sh', program], { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

function versionOf(path: string): string {
  return spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout ?? ''
}

let updated = false

function apt(name: string): void {
  if (which('apt-get') === undefined) throw new Error(`interop: ${name} is not installed, and there is no apt-get to install it with`)
  if (!updated) aptGet('update')
  updated = true
  console.error(`interop: installing ${name}`)
  aptGet('install', '-y', '--no-install-recommends', name)
}

function aptGet(...words: string[]): void {
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  const [program, ...rest] = [...asRoot, 'apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=300', ...words] as [string, ...string[]]
  const { status, error } = spawnSync(program, rest, {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 600_000,
  })
  if (status !== 0) throw new Error(`interop: ${[program, ...rest].join(' ')}: ${error?.message ?? `ended with ${status}`}`)
}

/** Test files run at the same time; one installs, the others wait for it. */
function exclusively<T>(work: () => T): T {
  mkdirSync(cache, { recursive: true })
  const lock = join(cache, 'lock')
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' })
      break
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (!isAlive(lock)) rmSync(lock, { force: true })
      Atomics.wait(pause, 0, 0, 100)
    }
  }
  try {
    return work()
  } finally {
    rmSync(lock, { force: true })
  }
}

function isAlive(lock: string): boolean {
  try {
    process.kill(Number(readFileSync(lock, 'utf8')) || -1, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
