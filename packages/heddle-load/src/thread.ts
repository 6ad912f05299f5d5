/** The program of one thread: says that it is ready, makes its share of the load when it is told to, and ends. */
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from 'heddle/io'
import type { Order, Report } from './messages.ts'
import type { Plan } from './plan.ts'
import { ThreadRun } from './thread-run.ts'

const plan = workerData as Plan
const port = parentPort
if (port === null) throw new Error('thread.ts is the program of a worker thread')
let run: ThreadRun | undefined
let timer: NodeJS.Timeout | undefined

port.on('message', (order: Order) => {
  if (order === 'stop') run?.stop()
  else if (run === undefined) void go()
})
report({ type: 'ready' })

async function go(): Promise<void> {
  run = new ThreadRun(plan, { clock: systemClock(), connect: undefined })
  timer = setInterval(() => report({ type: 'progress', progress: (run as ThreadRun).progress }), 250)
  const record = await run.record
  clearInterval(timer)
  report({ type: 'done', record })
  // Nothing else keeps it alive.
  port?.close()
}

function report(message: Report): void {
  port?.postMessage(message)
}
