import type { Clock } from 'heddle/io'
import type { Server } from 'heddle/server'
import { readinessOf, serveAdmin, type Readiness } from './admin/index.ts'
import type { Config } from './config/index.ts'
import { checkHttp3 } from './http3-error.ts'
import { listenError } from './listen-error.ts'
import { summarize, type Snapshot, type Summary } from './metrics/index.ts'
import type { ProxyObserver } from './record.ts'
import { Service, type ListeningAddress } from './service.ts'
import { Workers } from './workers/index.ts'

/** What {@link startGateway} cannot know from the configuration. All of it may be left out. */
export interface GatewayOptions {
  /** Time, for timeouts and durations in ms. Default: the system's. One process only: workers have their own. */
  readonly clock?: Clock
  /** Told of every request besides metrics and access log. Default: nobody. One process only: workers cannot tell it. */
  readonly observer?: ProxyObserver
  /** Told of what concerns no request: a worker that died, a failed accept, a certificate that cannot be read again. Default: a line on standard error. */
  readonly onError?: (message: string) => void
}

/** A gateway that runs, made by {@link startGateway}. `await using` closes it gracefully. */
export class Gateway implements AsyncDisposable {
  #config: Config
  readonly #work: Work
  #admin: Server | undefined
  #phase: 'running' | 'draining'
  #closing: Promise<void> | undefined
  #reloading: boolean

  /** Not to be called: use {@link startGateway}. */
  constructor(config: Config, work: Work) {
    this.#config = config
    this.#work = work
    this.#admin = undefined
    this.#phase = 'running'
    this.#closing = undefined
    this.#reloading = false
  }

  /** By which it works now. */
  get config(): Config {
    return this.#config
  }

  /** Where it listens, in the order of the configuration. */
  get addresses(): readonly ListeningAddress[] {
    return this.#work.addresses
  }

  /** `http://127.0.0.1:9990`, or undefined without an admin server. */
  get adminUrl(): string | undefined {
    return this.#admin?.url
  }

  /** `draining` once `close` was called. */
  get phase(): 'running' | 'draining' {
    return this.#phase
  }

  /** Process ids of those that serve: this one's, or the workers'. */
  get pids(): readonly number[] {
    return this.#work.pids
  }

  /** Counts and state of all processes, raw. */
  snapshot(): Promise<Snapshot> {
    return this.#work.snapshot()
  }

  /** The same as `/metrics.json` shows. */
  async stats(): Promise<Summary> {
    return summarize(await this.snapshot(), Date.now())
  }

  /** The same as `/readyz` shows. */
  async readiness(): Promise<Readiness> {
    return readinessOf(await this.snapshot(), this.#phase)
  }

  /** Opens the access log anew, after it was moved away, and reads certificates again. */
  refresh(): void {
    this.#work.refresh()
  }

  /**
   * Goes by `config` from the next request on, in all processes: routes and clusters, the time limits of a stop, and of
   * listeners `trust`, `via`, `forwarded` and certificates. What is under way goes on as it began; clusters that did not
   * change keep their connections. Rejects with a {@link ReloadError}, and nothing is changed, for what takes a restart;
   * also while another reload or the stop is under way, and for TLS files that cannot be read.
   */
  async reload(config: Config): Promise<void> {
    if (this.#phase === 'draining') throw new Error('the gateway stops, and takes no other configuration')
    if (this.#reloading) throw new Error('another reload is under way')
    checkHttp3(config)
    this.#reloading = true
    try {
      await this.#work.reload(config)
      this.#config = config
    } finally {
      this.#reloading = false
    }
  }

  /**
   * Stops gracefully: accepts no more, lets what runs finish, cuts what is left after `deadline` ms
   * (default: the configuration's `drainTimeout`). The admin server answers until the end. A second
   * call may bring the deadline forward.
   */
  close(options: { readonly deadline?: number } = {}): Promise<void> {
    this.#phase = 'draining'
    const closed = this.#work.close(options.deadline ?? this.config.drainTimeout)
    this.#closing ??= closed.then(() => this.#admin?.close({ deadline: 500 }))
    return this.#closing
  }

  /** Ends workers at once, for a second signal. What this process serves ends with it. */
  kill(): void {
    this.#work.kill()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Starts the admin server; called by {@link startGateway}. */
  async startAdmin(clock: Clock | undefined): Promise<void> {
    const { admin } = this.config
    if (admin === undefined) return
    this.#admin = await serveAdmin(admin, this, clock).catch((error: unknown) => {
      throw listenError(error, 'admin', admin.host, admin.port)
    })
  }
}

/** The work itself, done here or by workers. */
interface Work {
  readonly addresses: readonly ListeningAddress[]
  readonly pids: readonly number[]
  snapshot(): Promise<Snapshot>
  refresh(): void
  reload(config: Config): Promise<void>
  close(deadline: number): Promise<void>
  kill(): void
}

/**
 * Starts a gateway: listeners, admin server, workers if the configuration wants several. Rejects with
 * a {@link ListenError} if it cannot listen, with an {@link Http3Error} if it shall speak HTTP/3 where there is no QUIC;
 * nothing is left running then.
 *
 * ```ts
 * await using gateway = await startGateway(loadConfig('gateway.yaml'))
 * console.log(gateway.addresses, gateway.adminUrl)
 * ```
 */
export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const { onError = (message: string): void => console.error(`heddle-gateway: ${message}`) } = options
  checkHttp3(config)
  const work = config.workers > 1 ? await Workers.start(config, onError) : await startHere(config, options, onError)
  const gateway = new Gateway(config, work)
  try {
    await gateway.startAdmin(options.clock)
  } catch (error) {
    await gateway.close({ deadline: 0 })
    throw error
  }
  return gateway
}

async function startHere(config: Config, options: GatewayOptions, onError: (message: string) => void): Promise<Work> {
  const { clock, observer } = options
  const service = await Service.start(config, {
    onError,
    ...(clock === undefined ? undefined : { clock }),
    ...(observer === undefined ? undefined : { observer }),
  })
  return {
    addresses: service.addresses,
    pids: [process.pid],
    snapshot: () => Promise.resolve(service.snapshot()),
    refresh: () => service.refresh(),
    reload: async (config) => service.reload(config),
    close: (deadline) => service.close({ deadline }),
    kill: () => {},
  }
}
