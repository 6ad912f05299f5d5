import { monitorEventLoopDelay, performance, type EventLoopUtilization, type ELDHistogram } from 'node:perf_hooks'

/** ms between two looks at how late the event loop is. */
const resolution = 5

/** How busy a thread was while it measured. */
export interface LoopWatchRecord {
  /** Share of the time in which its event loop did not wait for anything. Spinning counts as busy. */
  readonly utilization: number
  /** CPU time of the whole process for each ms, all threads: 1 is one core. */
  readonly cpu: number
  /** How late its timers were, ms. */
  readonly delay: { readonly p50: number; readonly p99: number; readonly max: number }
}

/** Watches the thread it is made on: a load generator that cannot keep up measures itself. */
export class LoopWatch {
  #monitor: ELDHistogram | undefined
  #utilization: EventLoopUtilization | undefined
  #cpu: NodeJS.CpuUsage | undefined
  #startedAt = 0
  #record: LoopWatchRecord = { utilization: 0, cpu: 0, delay: { p50: 0, p99: 0, max: 0 } }

  start(): void {
    this.#monitor = monitorEventLoopDelay({ resolution })
    this.#monitor.enable()
    this.#utilization = performance.eventLoopUtilization()
    this.#cpu = process.cpuUsage()
    this.#startedAt = performance.now()
  }

  stop(): void {
    const monitor = this.#monitor
    if (monitor === undefined) return
    this.#monitor = undefined
    monitor.disable()
    const elapsed = Math.max(performance.now() - this.#startedAt, 1e-3)
    const { user, system } = process.cpuUsage(this.#cpu)
    // It counts the whole time between two looks.
    const late = (ns: number): number => (monitor.count === 0 ? 0 : Math.max(0, ns / 1e6 - resolution))
    this.#record = {
      utilization: performance.eventLoopUtilization(this.#utilization).utilization,
      cpu: (user + system) / 1_000 / elapsed,
      delay: { p50: late(monitor.percentile(50)), p99: late(monitor.percentile(99)), max: late(monitor.max) },
    }
  }

  /** What was seen between start and stop; zeros before. */
  get record(): LoopWatchRecord {
    return this.#record
  }
}
