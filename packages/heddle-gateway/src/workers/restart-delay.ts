/** A worker that dies is replaced after this, ms; doubled while they keep dying. */
const firstDelay = 100
const maxDelay = 10_000
/** A worker that lived so long, ms, died of something new: the delay starts again. */
const steadyTime = 10_000

/** How long to wait before the next worker is started: longer each time, while they do not live. */
export class RestartDelay {
  #next = firstDelay

  /** The delay, ms, after one that lived `lived` ms; 0 for one that did not even start. */
  after(lived: number): number {
    const delay = lived >= steadyTime ? firstDelay : this.#next
    this.#next = Math.min(delay * 2, maxDelay)
    return delay
  }
}
