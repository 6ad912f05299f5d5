import { List, type Linked } from './list.ts'

const slotBits = 8
const slots = 1 << slotBits
const levels = 4
/** Ticks that one slot of each level spans. */
const spans = Array.from({ length: levels }, (_, level) => 2 ** (level * slotBits))
/** Ticks beyond this are parked in the last level and looked at again when it turns. */
const horizon = slots ** levels - 1

/** One pending deadline. Owned by whoever waits; reusable after it fired or was cleared. */
export class WheelNode implements Linked {
  previous: Linked | undefined
  next: Linked | undefined
  /** The instant (ms) it is due; meaningful while `list` is set. */
  deadline: number
  list: List<WheelNode> | undefined
  readonly expire: () => void

  constructor(expire: () => void) {
    this.previous = undefined
    this.next = undefined
    this.deadline = Infinity
    this.list = undefined
    this.expire = expire
  }
}

/**
 * A hierarchical timer wheel of 1 ms ticks: setting and clearing are O(1) whatever the number of
 * timers, and nothing is allocated. A node never fires early; it fires in the first `advance` whose
 * `now` has reached its deadline. Pure: time comes in through `now`.
 */
export class TimerWheel {
  /** Pending nodes. */
  size: number
  #tick: number
  readonly #wheels: List<WheelNode>[][]
  readonly #due: List<WheelNode>
  /** Set inside `expire` for what is past already: due in the next `advance`, so nothing can spin in this one. */
  readonly #late: List<WheelNode>
  #advancing: boolean

  constructor(now: number) {
    this.size = 0
    this.#tick = Math.floor(now)
    this.#wheels = Array.from({ length: levels }, () => Array.from({ length: slots }, () => new List<WheelNode>()))
    this.#due = new List()
    this.#late = new List()
    this.#advancing = false
  }

  /** Arms `node` for `deadline` (ms); moves it if it is already armed. Infinity clears it. */
  set(node: WheelNode, deadline: number): void {
    if (node.list !== undefined) this.clear(node)
    if (deadline === Infinity) return
    node.deadline = deadline
    this.size++
    if (this.#advancing && Math.ceil(deadline) <= this.#tick) {
      node.list = this.#late
      this.#late.append(node)
    } else {
      this.#place(node)
    }
  }

  /** Disarms `node`; does nothing if it is not armed. */
  clear(node: WheelNode): void {
    const { list } = node
    if (list === undefined) return
    list.remove(node)
    node.list = undefined
    this.size--
  }

  /**
   * The earliest instant at which `advance` may have something to do, never later than the first
   * deadline: exact for what was set less than 256 ms ahead, otherwise when a coarser slot has to be
   * opened. Infinity if nothing is armed.
   */
  next(): number {
    if (this.size === 0) return Infinity
    if (this.#due.length > 0 || this.#late.length > 0) return this.#tick
    return this.#nextSlot()
  }

  #nextSlot(): number {
    // A coarser slot may begin before the first finer one that is taken, so every level has a say.
    let earliest = Infinity
    for (let level = 0; level < levels; level++) {
      const span = spans[level] as number
      const wheel = this.#wheels[level] as List<WheelNode>[]
      const base = Math.floor(this.#tick / span)
      for (let i = level === 0 ? 0 : 1; i <= slots; i++) {
        const slot = base + i
        if ((wheel[slot % slots] as List<WheelNode>).length > 0) {
          earliest = Math.min(earliest, slot * span)
          break
        }
      }
    }
    return Math.max(earliest, this.#tick)
  }

  /**
   * Fires every node due at `now`, in the order of their ticks. Nodes may be set and cleared
   * meanwhile; one set for an instant that has passed fires in the next `advance`. If an `expire`
   * throws, `advance` does, and the next one goes on behind that node. Not to be called from `expire`.
   */
  advance(now: number): void {
    const target = Math.floor(now)
    this.#move(this.#late, this.#due)
    this.#advancing = true
    try {
      this.#fire()
      while (this.size > this.#late.length) {
        const at = this.#nextSlot()
        if (at > target) break
        if (at > this.#tick) this.#turn(at)
        this.#move((this.#wheels[0] as List<WheelNode>[])[this.#tick % slots] as List<WheelNode>, this.#due)
        this.#fire()
      }
      if (target > this.#tick) this.#turn(target)
    } finally {
      this.#advancing = false
    }
  }

  #fire(): void {
    for (let node = this.#due.shift(); node !== undefined; node = this.#due.shift()) {
      node.list = undefined
      this.size--
      node.expire()
    }
  }

  #move(from: List<WheelNode>, to: List<WheelNode>): void {
    for (let node = from.shift(); node !== undefined; node = from.shift()) {
      node.list = to
      to.append(node)
    }
  }

  /** Moves to tick `at`; every level whose slot changed has its new slot spread over the finer ones. */
  #turn(at: number): void {
    const before = this.#tick
    this.#tick = at
    for (let level = levels - 1; level > 0; level--) {
      const span = spans[level] as number
      const slot = Math.floor(at / span)
      if (slot === Math.floor(before / span)) continue
      const list = (this.#wheels[level] as List<WheelNode>[])[slot % slots] as List<WheelNode>
      // A node may land in the same list again (it lies beyond the horizon): spread each only once.
      for (let count = list.length; count > 0; count--) {
        const node = list.shift() as WheelNode
        this.#place(node)
      }
    }
  }

  #place(node: WheelNode): void {
    // Rounded up, so a node never fires before its deadline.
    let tick = Math.ceil(node.deadline)
    if (tick < this.#tick) tick = this.#tick
    if (tick - this.#tick > horizon) tick = this.#tick + horizon
    let level = 0
    let slot = tick
    while (level < levels - 1 && slot - Math.floor(this.#tick / (spans[level] as number)) >= slots) {
      level++
      slot = Math.floor(tick / (spans[level] as number))
    }
    const list = (this.#wheels[level] as List<WheelNode>[])[slot % slots] as List<WheelNode>
    node.list = list
    list.append(node)
  }
}
