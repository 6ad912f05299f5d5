import cluster, { type Worker } from 'node:cluster'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { reloaded, type Config } from '../config/index.ts'
import { ListenError } from '../listen-error.ts'
import { pastOf, withPast, type Snapshot } from '../metrics/index.ts'
import type { ListeningAddress } from '../service.ts'
import type { Order, Report } from './messages.ts'
import { RestartDelay } from './restart-delay.ts'
import { claimUdpPorts } from './udp-ports.ts'

/** How long a worker may take to answer a question for its counts, ms; then its last answer stands. */
const answerTime = 1_000
/** … and to go by another configuration. */
const reloadTime = 5_000
/** What a worker may take beyond its deadline to say that it is done, ms; then it is killed. */
const exitTime = 2_000

/**
 * Several processes that serve the same listeners. `node:cluster` holds the sockets in the primary
 * and hands connections out in turn: the port stays open while a worker is replaced, the load is
 * even, and a port that another program has is an error, on every system. (With SO_REUSEPORT the
 * kernel deals connections by hash, resets those that wait at a worker that dies, and lets a second
 * gateway share the port unnoticed.) The price: a connection that was handed to a worker in the
 * moment it died is not answered.
 *
 * By UDP there is no such hand: for HTTP/3 each worker has a socket of its own (SO_REUSEPORT), and the kernel
 * deals datagrams by their addresses, so that those of one client reach one worker for as long as it keeps its
 * address and no worker comes or goes. One that gets a datagram of another's connection resets it, by the key
 * that all share: the client begins anew at once, instead of waiting.
 *
 * It uses the process-wide settings of `node:cluster`: one at a time.
 */
export class Workers {
  #config: Config
  /** Offered to clients since the start. */
  readonly #extendedConnect: boolean
  readonly #ticketKeys = randomBytes(48)
  readonly #quicKey = randomBytes(32)
  readonly #quicPorts: ReadonlyMap<string, number>
  readonly #members = new Set<Member>()
  readonly #onError: (message: string) => void
  /** What workers that are gone have counted. */
  #past: Snapshot | undefined
  #addresses: readonly ListeningAddress[] = []
  readonly #restartDelay = new RestartDelay()
  #timers = new Set<NodeJS.Timeout>()
  #closing: Promise<void> | undefined

  private constructor(config: Config, onError: (message: string) => void, quicPorts: ReadonlyMap<string, number>) {
    this.#config = config
    this.#quicPorts = quicPorts
    this.#extendedConnect = config.routes.some((route) => route.extendedConnect)
    this.#onError = onError
  }

  /** Starts all; resolves when every worker listens, rejects (with a {@link ListenError}) if one cannot. */
  static async start(config: Config, onError: (message: string) => void): Promise<Workers> {
    const workers = new Workers(config, onError, await claimUdpPorts(config))
    const suffix = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    cluster.setupPrimary({ exec: fileURLToPath(new URL(`./worker.${suffix}`, import.meta.url)), args: [], serialization: 'advanced' })
    cluster.schedulingPolicy = cluster.SCHED_RR
    const started = await Promise.allSettled(Array.from({ length: config.workers }, () => workers.#fork()))
    const failed = started.find((result) => result.status === 'rejected')
    if (failed !== undefined) {
      await workers.close(0)
      throw failed.reason
    }
    return workers
  }

  get addresses(): readonly ListeningAddress[] {
    return this.#addresses
  }

  /** Process ids of the workers that serve. */
  get pids(): readonly number[] {
    return [...this.#members].filter((member) => member.isServing).map((member) => member.worker.process.pid as number)
  }

  /** What all have counted, the dead included. */
  async snapshot(): Promise<Snapshot> {
    const parts = await Promise.all([...this.#members].map((member) => member.snapshot()))
    return withPast(
      parts.filter((part) => part !== undefined),
      this.#past,
    )
  }

  /** Logs are opened anew, certificates read again. */
  refresh(): void {
    for (const member of this.#members) member.send({ type: 'refresh' })
  }

  /**
   * All go by `config`, and those that take the place of others too. Rejects if it cannot be, or if some worker could
   * not: then all go by what they had.
   */
  async reload(config: Config): Promise<void> {
    const before = this.#config
    // Whoever starts meanwhile starts with it.
    this.#config = reloaded(before, config, this.#extendedConnect)
    const problem = await this.#tellAll(config)
    if (problem === undefined) return
    this.#config = before
    // For those that could, and those that answer late: orders are followed in turn.
    await this.#tellAll(before)
    throw new Error(problem)
  }

  /** The first reason why a worker does not go by `config`. */
  async #tellAll(config: Config): Promise<string | undefined> {
    const problems = await Promise.all([...this.#members].map((member) => member.reload(config)))
    return problems.find((text) => text !== '')
  }

  /** All stop accepting, finish what they have within `deadline` ms, and end. A second call may bring the deadline forward. */
  close(deadline: number): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    const ended = [...this.#members].map((member) => member.close(deadline))
    this.#closing ??= Promise.all(ended).then(() => {})
    return this.#closing
  }

  /** Ends all at once. */
  kill(): void {
    this.#closing ??= Promise.resolve()
    for (const member of this.#members) member.worker.process.kill('SIGKILL')
  }

  #fork(): Promise<void> {
    const member = new Member(cluster.fork())
    this.#members.add(member)
    void member.ended.then((how) => this.#bury(member, how))
    member.send({
      type: 'start',
      config: this.#config,
      processes: this.#config.workers,
      ticketKeys: this.#ticketKeys,
      quicKey: this.#quicKey,
      quicPorts: this.#quicPorts,
      extendedConnect: this.#extendedConnect,
    })
    return member.started.then((addresses) => {
      if (this.#addresses.length === 0) this.#addresses = addresses
    })
  }

  #bury(member: Member, how: string): void {
    this.#members.delete(member)
    if (member.last !== undefined) this.#past = pastOf(this.#past === undefined ? [member.last] : [this.#past, member.last])
    if (this.#closing !== undefined || !member.isServing) return
    const delay = this.#restartDelay.after(Date.now() - member.bornAt)
    this.#onError(`worker ${member.worker.process.pid} ended (${how}); another one starts in ${delay} ms`)
    this.#replace(delay)
  }

  #replace(delay: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      this.#fork().catch((error: unknown) => {
        if (this.#closing !== undefined) return
        const next = this.#restartDelay.after(0)
        this.#onError(`a worker could not start (${(error as Error).message}); tried again in ${next} ms`)
        this.#replace(next)
      })
    }, delay)
    this.#timers.add(timer)
  }
}

/** One worker as the primary sees it. */
class Member {
  readonly worker: Worker
  readonly bornAt = Date.now()
  readonly started: Promise<readonly ListeningAddress[]>
  /** Fulfilled with how it ended, once it did. */
  readonly ended: Promise<string>
  /** It listened at some time; its end is a surprise unless it was told to close. */
  isServing = false
  /** Its latest counts. */
  last: Snapshot | undefined
  readonly #questions = new Map<number, (problem: string) => void>()
  #nextId = 1
  #closing = false

  constructor(worker: Worker) {
    this.worker = worker
    const started = Promise.withResolvers<readonly ListeningAddress[]>()
    this.started = started.promise
    this.ended = new Promise((resolve) => {
      const end = (how: string): void => {
        for (const answer of this.#questions.values()) answer('')
        started.reject(new Error(`a worker ended before it listened: ${how}`))
        resolve(how)
      }
      worker.on('exit', (code, signal) => end(signal === null ? `exit code ${code}` : signal))
      // A process that could not be made has no exit. Of others, a channel that breaks is told by the exit that follows.
      worker.on('error', (error) => {
        if (worker.process.pid === undefined) end(error.message)
      })
    })
    worker.on('message', (report: Report) => {
      if (report.type === 'started') {
        this.isServing = true
        started.resolve(report.addresses)
      } else if (report.type === 'failed') {
        started.reject(report.code === '' ? new Error(report.message) : new ListenError(report.message, report.code))
      } else if (report.type === 'reloaded') {
        this.#questions.get(report.id)?.(report.problem)
      } else {
        this.last = report.snapshot
        if (report.type === 'snapshot') this.#questions.get(report.id)?.('')
      }
    })
  }

  send(order: Order): void {
    if (this.worker.isConnected()) this.worker.send(order, () => {})
  }

  async snapshot(): Promise<Snapshot | undefined> {
    if (!this.isServing || !this.worker.isConnected()) return this.last
    await this.#ask((id) => ({ type: 'snapshot', id }), answerTime, '')
    return this.last
  }

  /** Why it goes by the configuration it had; empty: it does not, or it is gone. */
  async reload(config: Config): Promise<string> {
    // Of one that is about to listen: it began with the old one.
    const starts = await this.started.then(
      () => true,
      () => false,
    )
    if (!starts || !this.worker.isConnected()) return ''
    const { pid } = this.worker.process
    const problem = await this.#ask((id) => ({ type: 'reload', id, config }), reloadTime, `no answer within ${reloadTime / 1_000} s`)
    return problem === '' ? '' : `worker ${pid} did not take it: ${problem}`
  }

  /** The worker's answer to an order; `silence` if there is none within `time` ms, and empty if the worker ends. */
  async #ask(order: (id: number) => Order, time: number, silence: string): Promise<string> {
    const id = this.#nextId++
    const answered = Promise.withResolvers<string>()
    const timer = setTimeout(() => answered.resolve(silence), time)
    this.#questions.set(id, answered.resolve)
    this.send(order(id))
    const answer = await answered.promise
    clearTimeout(timer)
    this.#questions.delete(id)
    return answer
  }

  async close(deadline: number): Promise<void> {
    this.send({ type: 'close', deadline })
    if (this.#closing) return
    this.#closing = true
    // It may hang, or have closed its channel: it must not outlive the primary.
    const timer = setTimeout(() => this.worker.process.kill('SIGKILL'), deadline + exitTime)
    await this.ended
    clearTimeout(timer)
  }
}
