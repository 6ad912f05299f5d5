import type { Head } from 'heddle/http'

const slots = 8
/** Characters of a head that is kept: engines recognise no larger ones either. */
const longest = 2_048

/**
 * What was made of the last heads. Engines give a head that a peer repeats as the same object, so a
 * comparison of references finds it. Bounded in number and size: heads are what peers like.
 */
export class RecentHeads<Made> {
  readonly heads: (Head | undefined)[]
  readonly made: (Made | undefined)[]
  next: number

  constructor() {
    this.heads = Array.from({ length: slots }, () => undefined)
    this.made = Array.from({ length: slots }, () => undefined)
    this.next = 0
  }

  /** What was made of `head`, or undefined. */
  find(head: Head): Made | undefined {
    const { heads } = this
    for (let i = 0; i < slots; i++) if (heads[i] === head) return this.made[i]
    return undefined
  }

  /** Remembers what was made of `head`, in place of the oldest. */
  keep(head: Head, made: Made): void {
    if (sizeOf(head) > longest) return
    const at = this.next++ % slots
    this.heads[at] = head
    this.made[at] = made
  }
}

function sizeOf({ path, authority, fields }: Head): number {
  let size = path.length + authority.length
  for (let i = 0; i < fields.length; i++) size += (fields[i] as string).length
  return size
}
