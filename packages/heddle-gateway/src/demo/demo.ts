import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseConfig } from '../config/index.ts'
import { startGateway, type Gateway } from '../gateway.ts'

export interface DemoOptions {
  /** Port of the gateway. 0: any free one. */
  readonly port: number
  readonly adminPort: number
  /** How long the origin stays away after it was stopped, ms. Default 5,000. */
  readonly restartDelay?: number
  /** Prints a line for people. */
  readonly print: (line: string) => void
}

/** The demo that runs. */
export interface Demo {
  readonly gateway: Gateway
  /** The origin's process id; 0 while it is away. */
  readonly originPid: number
  /** As `Gateway.close`, and the origin ends too. */
  close(options?: { readonly deadline?: number }): Promise<void>
}

/** Starts a gateway on 127.0.0.1 in front of an origin of its own, and tells what to try. */
export async function startDemo(options: DemoOptions): Promise<Demo> {
  const { print } = options
  const origin = new Origin(options.restartDelay ?? 5_000, print)
  const originPort = await origin.start()
  let gateway: Gateway
  try {
    gateway = await startGateway(parseConfig(demoConfig(options, originPort), { file: 'demo' }))
  } catch (error) {
    origin.stop()
    throw error
  }
  const url = gateway.addresses[0]?.url as string
  origin.link(gateway.adminUrl as string)
  print(welcome(url, gateway.adminUrl as string, origin.pid, originPort))
  return {
    gateway,
    get originPid() {
      return origin.pid
    },
    async close(closeOptions) {
      await gateway.close(closeOptions)
      origin.stop()
    },
  }
}

function demoConfig(options: DemoOptions, originPort: number): string {
  return `
admin: { port: ${options.adminPort} }
listeners:
  - { name: demo, host: 127.0.0.1, port: ${options.port} }
routes:
  - { name: everything, cluster: origin }
clusters:
  - name: origin
    endpoints: [127.0.0.1:${originPort}]
    connectTimeout: 1s
`
}

function welcome(url: string, admin: string, pid: number, port: number): string {
  const tries = [
    [`curl -v ${url}/`, 'the demo page: the way of a request'],
    [`curl ${url}/headers`, 'what the origin received, as JSON'],
    [`curl --http2-prior-knowledge ${url}/headers`, 'the same over HTTP/2'],
    [`curl -N ${url}/stream`, 'ten lines, as they are made'],
    [`curl -d hello ${url}/echo`, 'content both ways'],
    [`curl ${admin}/metrics`, `for Prometheus; ${admin}/ is for people`],
    [`curl -i ${admin}/readyz`, 'whether it can take requests'],
  ] as const
  const faults = [
    [`kill ${pid}; curl -i ${url}/`, '502 with a heddle-reason; the origin is back after five seconds'],
    [`curl -X POST ${url}/demo/stop`, 'stops it as well'],
  ] as const
  const width = Math.max(...[...tries, ...faults].map(([command]) => command.length))
  const lines = (rows: typeof tries | typeof faults): string =>
    rows.map(([command, what]) => `  ${command.padEnd(width)}   ${what}`).join('\n')
  return `
heddle-gateway demo

  gateway  ${url}   in front of a demo origin (127.0.0.1:${port}, process ${pid})
  admin    ${admin}

Try, in another terminal or a browser:

${lines(tries)}

${lines(faults)}

Ctrl-C stops the demo.
`
}

/** The origin's process, started again whenever it ends. */
class Origin {
  pid = 0
  readonly #restartDelay: number
  readonly #print: (line: string) => void
  #port = 0
  #adminUrl = ''
  #child: ChildProcess | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(restartDelay: number, print: (line: string) => void) {
    this.#restartDelay = restartDelay
    this.#print = print
  }

  /** Resolves with the port, which stays the same. */
  start(): Promise<number> {
    const suffix = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    const child = fork(fileURLToPath(new URL(`./origin.${suffix}`, import.meta.url)), [String(this.#port)])
    this.#child = child
    return new Promise((resolve, reject) => {
      child.once('message', ({ port }: { port: number }) => {
        this.pid = child.pid as number
        this.#port = port
        this.#tell(child)
        resolve(port)
      })
      child.once('error', reject)
      child.once('exit', (code, signal) => {
        const wasUp = this.pid !== 0
        this.pid = 0
        reject(new Error(`the demo's origin did not start (${signal ?? `exit code ${code}`})`))
        if (!this.#stopped && wasUp) this.#restart(`The origin ended (${signal ?? `exit code ${code}`})`)
      })
    })
  }

  /** Tells the origin what its page links to. */
  link(adminUrl: string): void {
    this.#adminUrl = adminUrl
    if (this.#child !== undefined) this.#tell(this.#child)
  }

  #tell(child: ChildProcess): void {
    // It may be ending just now; then its successor is told.
    if (child.connected) child.send({ adminUrl: this.#adminUrl }, () => {})
  }

  #restart(why: string): void {
    this.#print(`${why}; it is back in ${this.#restartDelay / 1_000} s. Until then: 502.`)
    this.#timer = setTimeout(() => {
      this.start().then(
        () => this.#print(`The origin is back, process ${this.pid}.`),
        (error: Error) => {
          if (!this.#stopped) this.#restart(error.message)
        },
      )
    }, this.#restartDelay)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    // It ends when the channel does; not by a signal, which its own handlers might keep.
    if (this.#child?.connected === true) this.#child.disconnect()
  }
}
