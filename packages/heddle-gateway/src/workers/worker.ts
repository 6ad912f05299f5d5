/** The program of one worker process: does what the primary says. */
import type { Config } from '../config/index.ts'
import { Service } from '../service.ts'
import type { Order, Report } from './messages.ts'

let service: Service | undefined
let closing = false

// Ctrl-C and service managers signal the whole group of processes. When to stop, and how, is the
// primary's to say, else workers would vanish under requests that the primary is draining.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
process.on('SIGHUP', () => {})

process.on('message', (order: Order) => {
  switch (order.type) {
    case 'start':
      void start(order)
      break
    case 'snapshot':
      if (service !== undefined) report({ type: 'snapshot', id: order.id, snapshot: service.snapshot() })
      break
    case 'refresh':
      service?.refresh()
      break
    case 'reload':
      report({ type: 'reloaded', id: order.id, problem: reload(order.config) })
      break
    case 'close':
      void close(order.deadline)
  }
})

async function start({
  config,
  processes,
  ticketKeys,
  quicKey,
  quicPorts,
  extendedConnect,
}: Extract<Order, { type: 'start' }>): Promise<void> {
  try {
    service = await Service.start(config, {
      processes,
      ticketKeys: Buffer.from(ticketKeys),
      quicKey: Buffer.from(quicKey),
      quicPorts,
      extendedConnect,
    })
    report({ type: 'started', addresses: service.addresses })
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    report({ type: 'failed', code, message }, () => process.exit(1))
  }
}

/** Returns why it could not be. */
function reload(config: Config): string {
  try {
    service?.reload(config)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

async function close(deadline: number): Promise<void> {
  const closed = service?.close({ deadline })
  if (closing) return
  closing = true
  await closed
  if (service === undefined) process.exit(0)
  report({ type: 'closed', snapshot: service.snapshot() }, () => process.exit(0))
}

function report(message: Report, sent?: () => void): void {
  // The channel is gone when the primary is; then Node ends this process by itself.
  process.send?.(message, undefined, {}, () => sent?.())
}
