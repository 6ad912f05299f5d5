import type {
  ConnectionHandler,
  ConnectionInfo,
  Exchange,
  ExchangeHandler,
  HeddleError,
  HttpConnection,
  Instant,
  OutboxLike,
  StreamEngine,
} from '../http/index.ts'
import type { Http1Options } from './options.ts'

export class ClientConnection implements StreamEngine, HttpConnection {
  readonly info: ConnectionInfo
  readonly handler: ConnectionHandler
  onDirty: () => void
  wantsInput: boolean
  closing: 'no' | 'end' | 'close' | 'reset'
  deadline: Instant
  openable: number
  openExchanges: number

  constructor(info: ConnectionInfo, handler: ConnectionHandler, _options: Http1Options, _now: Instant) {
    this.info = info
    this.handler = handler
    this.onDirty = () => {}
    this.wantsInput = true
    this.closing = 'no'
    this.deadline = Infinity
    this.openable = 0
    this.openExchanges = 0
  }

  receive(_buffer: Uint8Array, _start: number, _limit: number, _now: Instant): void {}
  receiveEnd(_now: Instant): void {}
  receiveError(_error: HeddleError, _now: Instant): void {}
  transmit(_out: OutboxLike, _now: Instant): boolean {
    return false
  }
  expire(_now: Instant): void {}
  open(_handler: ExchangeHandler): Exchange | undefined {
    return undefined
  }
  shutdown(): void {}
  abort(_error: HeddleError): void {}
}
