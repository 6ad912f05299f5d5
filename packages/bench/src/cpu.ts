import { readdirSync, readFileSync } from 'node:fs'

/** CPU time of a process and all its descendants, user and system, every thread, in µs. Linux only: NaN elsewhere. */
export function treeCpuMicros(pid: number): number {
  let total = 0
  for (const one of tree(pid)) total += processCpuMicros(one)
  return total
}

/** Resident memory of the tree in bytes. */
export function treeRss(pid: number): number {
  let total = 0
  for (const one of tree(pid)) {
    try {
      total += Number(readFileSync(`/proc/${one}/statm`, 'latin1').split(' ')[1]) * 4096
    } catch {}
  }
  return total
}

function tree(pid: number): number[] {
  const children = new Map<number, number[]>()
  let entries: string[]
  try {
    entries = readdirSync('/proc')
  } catch {
    return [pid]
  }
  for (const entry of entries) {
    if (!/^\d+$/.test(entry)) continue
    try {
      const fields = statFields(Number(entry))
      const parent = Number(fields[1])
      children.set(parent, [...(children.get(parent) ?? []), Number(entry)])
    } catch {}
  }
  const found: number[] = []
  const wanted = [pid]
  for (let one = wanted.pop(); one !== undefined; one = wanted.pop()) {
    found.push(one)
    wanted.push(...(children.get(one) ?? []))
  }
  return found
}

function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

// schedstat counts nanoseconds where stat counts ticks of 10 ms; it knows living threads only, so
// the larger of the two is closest to the truth.
function processCpuMicros(pid: number): number {
  try {
    const fields = statFields(pid)
    const ticks = (Number(fields[11]) + Number(fields[12])) * 10_000
    let precise = 0
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      try {
        precise += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'latin1').split(' ')[0]) / 1000
      } catch {}
    }
    return precise > ticks - 20_000 ? precise : ticks
  } catch {
    return Number.NaN
  }
}
