import { UsageError, type Fields, type Head } from '../http/index.ts'
import type { Clock } from '../io/index.ts'
import { acceptDeflate, answerFields, readOffer, webSocketVersion, type DeflateAnswer, type ReceivedOffer } from '../ws/index.ts'
import { deflateChecks } from './deflate-checks.ts'
import { checkOptions, shown, wrongOption } from './option-checks.ts'
import { originProblem } from './origin.ts'
import type { SocketOptions } from './socket-options.ts'
import { limitsOf } from './socket-settings.ts'
import type { UpgradeDeflate, UpgradeOptions } from './upgrade-options.ts'

/** A handshake a server accepts. */
export interface Agreement {
  /** The fields of the answer that belong to the handshake. */
  readonly fields: Fields
  /** What the {@link Socket} is made with. */
  readonly options: SocketOptions
}

/** One it does not accept: what the client is told. */
export interface Refusal {
  readonly status: number
  readonly reason: string
  readonly fields: Fields
}

/** The answer to a request that asks for no WebSocket where there is nothing else. */
export function notAsked(method: string): Refusal {
  // RFC 6455 §4.1
  if (method !== 'GET') return { status: 405, reason: 'A WebSocket is asked for with GET.', fields: ['allow', 'GET'] }
  // RFC 9110 §15.5.22; HTTP/2 knows no Upgrade, and leaves the field out.
  const fields = ['upgrade', 'websocket', 'sec-websocket-version', webSocketVersion]
  return { status: 426, reason: 'Here is a WebSocket, and nothing else.', fields }
}

/** Reads a client's handshake, `head` being its CONNECT, and decides. Throws UsageError for options that cannot be kept; `face` is who was asked. */
export function agree(face: string, head: Head, options: UpgradeOptions, clock: Clock | undefined): Agreement | Refusal {
  if (head.protocol !== 'websocket') return notAsked(head.method)
  const offer = readOffer(head.fields)
  if ('status' in offer) return offer
  const problem = originProblem(face, options.origin, head)
  // RFC 6455 §4.2.2
  if (problem !== '') return { status: 403, reason: problem, fields: [] }
  const protocol = chosenProtocol(face, options.protocol, offer.protocols)
  const policy = deflatePolicy(face, options.deflate)
  limitsOf(options.limits, 'server', face)
  const deflate = policy === undefined ? undefined : acceptDeflate(offer.extensions, policy)
  return {
    fields: answerFields(protocol, deflate?.text ?? ''),
    options: socketOptions(protocol, policy, deflate, options, clock),
  }
}

function socketOptions(
  protocol: string,
  policy: UpgradeDeflate | undefined,
  deflate: DeflateAnswer | undefined,
  { limits, fragmentSize }: UpgradeOptions,
  clock: Clock | undefined,
): SocketOptions {
  const { level, memoryLevel, contextSize, threshold } = policy ?? {}
  return {
    role: 'server',
    protocol,
    extensions: deflate?.text ?? '',
    deflate: deflate === undefined ? undefined : { parameters: deflate.parameters, level, memoryLevel, contextSize, threshold },
    limits,
    fragmentSize,
    clock,
    opened: false,
  }
}

function chosenProtocol(face: string, spoken: UpgradeOptions['protocol'], offered: ReceivedOffer['protocols']): string {
  if (spoken === undefined) return ''
  if (typeof spoken !== 'function') return (typeof spoken === 'string' ? [spoken] : spoken).find((name) => offered.includes(name)) ?? ''
  const chosen = spoken(offered)
  if (chosen === undefined || chosen === '') return ''
  // A promise among them: there is no time to wait for one.
  if (typeof chosen !== 'string') throw wrongOption(face, 'what the function protocol returns', 'a subprotocol or undefined', chosen)
  // RFC 6455 §4.2.2: the client would have to fail the connection.
  if (!offered.includes(chosen)) throw new UsageError(`${face}: subprotocol ${shown(chosen)} was not offered by the client`)
  return chosen
}

function deflatePolicy(face: string, deflate: UpgradeOptions['deflate']): UpgradeDeflate | undefined {
  if (deflate === undefined || deflate === false) return undefined
  if (deflate === true) return {}
  checkOptions(face, 'deflate', deflate, deflateChecks)
  return deflate
}
