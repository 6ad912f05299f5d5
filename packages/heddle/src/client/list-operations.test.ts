import { List } from '../bytes/index.ts'

/** Counts what lists are asked to do while `run` runs: all that cancelling and waking may cost. */
export function listOperations(run: () => void): number {
  let count = 0
  const { append, prepend, insertBefore, remove } = List.prototype
  List.prototype.append = function (node) {
    count++
    append.call(this, node)
  }
  List.prototype.prepend = function (node) {
    count++
    prepend.call(this, node)
  }
  List.prototype.insertBefore = function (node, next) {
    count++
    insertBefore.call(this, node, next)
  }
  List.prototype.remove = function (node) {
    count++
    remove.call(this, node)
  }
  try {
    run()
  } finally {
    Object.assign(List.prototype, { append, prepend, insertBefore, remove })
  }
  return count
}
