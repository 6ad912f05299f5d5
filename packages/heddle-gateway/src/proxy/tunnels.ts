import type { Clock } from 'heddle/io'
import { Term } from './term.ts'
import type { Tunnel } from './tunnel.ts'

/** The tunnels of a gateway, and what becomes of them when it stops. */
export class Tunnels {
  /** Those with a client. */
  readonly open: Set<Tunnel>
  /** Those without, whose upstreams have the time to answer a Close. */
  readonly #lingering: Set<Tunnel>
  /** When the open ones are closed … */
  readonly #end: Term
  /** … and what lingers is cut. */
  readonly #cut: Term
  #whenOver: (() => void)[]

  constructor(clock: Clock) {
    this.open = new Set()
    this.#lingering = new Set()
    this.#end = new Term(clock, () => {
      for (const tunnel of this.open) tunnel.end('shutdown')
    })
    this.#cut = new Term(clock, () => {
      for (const tunnel of this.#lingering) tunnel.cut()
    })
    this.#whenOver = []
  }

  /** It is open, and what was said before has been passed on. */
  add(tunnel: Tunnel): void {
    this.open.add(tunnel)
    if (this.#end.isOver) tunnel.end('shutdown')
  }

  /** Its client has gone. */
  leave(tunnel: Tunnel): void {
    this.open.delete(tunnel)
    if (!tunnel.isLingering) return
    this.#lingering.add(tunnel)
    if (this.#cut.isOver) tunnel.cut()
  }

  /** Nothing is left of it. */
  forget(tunnel: Tunnel): void {
    this.#lingering.delete(tunnel)
    if (this.#lingering.size > 0) return
    for (const resolve of this.#whenOver.splice(0)) resolve()
  }

  /** Closes those that are open `grace` ms from now, and those that open later at once. A second call may bring that forward. */
  end(grace: number): void {
    this.#end.set(grace)
  }

  /** Cuts what lingers `deadline` ms from now. A second call may bring that forward. */
  cut(deadline: number): void {
    this.#cut.set(deadline)
  }

  /** Fulfilled when none lingers. For when no new ones can open. */
  async over(): Promise<void> {
    this.#end.set(0)
    if (this.#lingering.size > 0) await new Promise<void>((resolve) => this.#whenOver.push(resolve))
    this.#cut.set(0)
  }
}
