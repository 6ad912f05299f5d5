/**
 * Keeps the process alive while requests are under way, for all clients of the thread. Their sockets
 * do not: an idle connection must not keep a program that is done from ending, and to `ref` and
 * `unref` each socket around each request would cost more than this count.
 */
class LoopHold {
  #count = 0
  #timer: NodeJS.Timeout | undefined

  enter(): void {
    if (this.#count++ > 0) return
    if (this.#timer === undefined) this.#timer = setInterval(nothing, longest)
    else this.#timer.ref()
  }

  leave(): void {
    if (--this.#count === 0) this.#timer?.unref()
  }
}

/** What setInterval can wait at most: it never does anything. */
const longest = 0x7fff_ffff

function nothing(): void {}

export type { LoopHold }
export const loopHold: LoopHold = new LoopHold()
