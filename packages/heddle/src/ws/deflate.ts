import { UsageError } from '../http/index.ts'
import type { Extension } from './extension.ts'

/** The extension's name (RFC 7692 §7). */
export const deflateExtension = 'permessage-deflate'
const allBits = 15
/** zlib has no smaller window to compress with: asked for 8 it uses 9, which a peer with 8 cannot inflate. */
const leastBits = 9

/** What both sides agreed on (RFC 7692 §7.1). `client…` concerns the messages the client sends, `server…` those of the server. */
export interface DeflateParameters {
  /** The server forgets what it compressed after each message. */
  readonly serverNoContextTakeover: boolean
  readonly clientNoContextTakeover: boolean
  /** The server's window is 2^this bytes at most: 8–15. */
  readonly serverMaxWindowBits: number
  readonly clientMaxWindowBits: number
}

/** What a client asks for. */
export interface DeflateOffer {
  /** Asks the server to keep no context: costs compression, saves memory here. Default false. */
  readonly serverNoContextTakeover?: boolean | undefined
  /** Tells the server that this side keeps no context. Default false. */
  readonly clientNoContextTakeover?: boolean | undefined
  /** Asks the server for a window of 2^this bytes at most: 9–15. Default: not asked. */
  readonly serverMaxWindowBits?: number | undefined
  /** The largest window this side would use: 9–15. Default 15, which the server may lower. */
  readonly clientMaxWindowBits?: number | undefined
}

/** What a server agrees to. */
export interface DeflatePolicy {
  /** Keeps no context for what it sends. Default: as the client asks. */
  readonly serverNoContextTakeover?: boolean | undefined
  /** Has the client keep no context, so that none is needed here to inflate. Default: as the client says. */
  readonly clientNoContextTakeover?: boolean | undefined
  /** Window of what is sent, 2^this bytes at most: 9–15. Default 15. */
  readonly serverMaxWindowBits?: number | undefined
  /** Window of what is received: 9–15. Default 15. Clients that cannot be told to use less are not agreed with. */
  readonly clientMaxWindowBits?: number | undefined
}

/** The direction a side compresses in and the one it inflates, as its codec wants to know. */
export interface CodecSettings {
  /** 9–15; 0: this side cannot compress as agreed, and sends everything uncompressed. */
  readonly deflateWindowBits: number
  readonly deflateTakeover: boolean
  /** 9–15. */
  readonly inflateWindowBits: number
  readonly inflateTakeover: boolean
}

// ── Client ────────────────────────────────────────────────────────────────────────────────────────

/** The element of Sec-WebSocket-Extensions that makes this offer. Throws UsageError for window bits other than 9–15. */
export function writeDeflateOffer(offer: DeflateOffer): string {
  const { serverNoContextTakeover, clientNoContextTakeover, serverMaxWindowBits, clientMaxWindowBits = allBits } = offer
  checkBits(serverMaxWindowBits, 'serverMaxWindowBits')
  checkBits(clientMaxWindowBits, 'clientMaxWindowBits')
  let text = deflateExtension
  if (serverNoContextTakeover === true) text += '; server_no_context_takeover'
  if (clientNoContextTakeover === true) text += '; client_no_context_takeover'
  if (serverMaxWindowBits !== undefined && serverMaxWindowBits < allBits) text += `; server_max_window_bits=${serverMaxWindowBits}`
  // Without a value: the server may choose one (RFC 7692 §7.1.2.2).
  text += clientMaxWindowBits < allBits ? `; client_max_window_bits=${clientMaxWindowBits}` : '; client_max_window_bits'
  return text
}

/** What the server's answer to `offer` comes to, or what is wrong with it: then the handshake has failed (RFC 7692 §7.1). */
export function readDeflateAnswer(answer: Extension, offer: DeflateOffer): DeflateParameters | string {
  const read = readParameters(answer)
  if (typeof read === 'string') return read
  const { serverMaxWindowBits = allBits, clientMaxWindowBits = allBits } = offer
  // RFC 7692 §7.1.1.1, RFC 7692 §7.1.2.1: a server that does not keep to these declines the offer.
  if (offer.serverNoContextTakeover === true && !read.serverNoContextTakeover) return 'server_no_context_takeover was not accepted'
  if (serverMaxWindowBits < allBits && !(read.serverMaxWindowBits > 0 && read.serverMaxWindowBits <= serverMaxWindowBits)) {
    return `server_max_window_bits=${serverMaxWindowBits} was not accepted`
  }
  if (read.clientMaxWindowBits === 0) return 'client_max_window_bits without a value'
  // RFC 7692 §7.1.2.2
  if (read.clientMaxWindowBits > clientMaxWindowBits) return 'client_max_window_bits is more than was offered'
  return {
    serverNoContextTakeover: read.serverNoContextTakeover,
    clientNoContextTakeover: read.clientNoContextTakeover || offer.clientNoContextTakeover === true,
    serverMaxWindowBits: read.serverMaxWindowBits < 0 ? allBits : read.serverMaxWindowBits,
    clientMaxWindowBits: read.clientMaxWindowBits < 0 ? clientMaxWindowBits : read.clientMaxWindowBits,
  }
}

// ── Server ────────────────────────────────────────────────────────────────────────────────────────

/** The offer a server agreed to. */
export interface DeflateAnswer {
  readonly parameters: DeflateParameters
  /** The value of Sec-WebSocket-Extensions that says so. */
  readonly text: string
}

/** Agrees to the first of the client's offers that can be kept to; undefined: to none, and messages stay uncompressed. */
export function acceptDeflate(extensions: readonly Extension[], policy: DeflatePolicy): DeflateAnswer | undefined {
  checkBits(policy.serverMaxWindowBits, 'serverMaxWindowBits')
  checkBits(policy.clientMaxWindowBits, 'clientMaxWindowBits')
  for (const extension of extensions) {
    if (extension.name !== deflateExtension) continue
    // RFC 7692 §7: an offer with a parameter that is unknown, repeated or has a bad value is declined, the next one looked at.
    const offered = readParameters(extension)
    if (typeof offered === 'string') continue
    const answer = answerOffer(offered, policy)
    if (answer !== undefined) return answer
  }
  return undefined
}

function answerOffer(offered: ReadParameters, policy: DeflatePolicy): DeflateAnswer | undefined {
  const { serverMaxWindowBits: serverMost = allBits, clientMaxWindowBits: clientMost = allBits } = policy
  if (offered.serverMaxWindowBits === 0 || (offered.serverMaxWindowBits > 0 && offered.serverMaxWindowBits < leastBits)) return undefined
  // RFC 7692 §7.1.2.2: only a client that offered it can be told.
  if (clientMost < allBits && offered.clientMaxWindowBits < 0) return undefined
  const parameters: DeflateParameters = {
    serverNoContextTakeover: offered.serverNoContextTakeover || policy.serverNoContextTakeover === true,
    clientNoContextTakeover: offered.clientNoContextTakeover || policy.clientNoContextTakeover === true,
    serverMaxWindowBits: offered.serverMaxWindowBits < 0 ? serverMost : Math.min(offered.serverMaxWindowBits, serverMost),
    clientMaxWindowBits: offered.clientMaxWindowBits <= 0 ? clientMost : Math.min(offered.clientMaxWindowBits, clientMost),
  }
  let text = deflateExtension
  if (parameters.serverNoContextTakeover) text += '; server_no_context_takeover'
  if (parameters.clientNoContextTakeover) text += '; client_no_context_takeover'
  if (offered.serverMaxWindowBits > 0 || parameters.serverMaxWindowBits < allBits) {
    text += `; server_max_window_bits=${parameters.serverMaxWindowBits}`
  }
  if (offered.clientMaxWindowBits >= 0 && parameters.clientMaxWindowBits < allBits) {
    text += `; client_max_window_bits=${parameters.clientMaxWindowBits}`
  }
  return { parameters, text }
}

// ── Both ──────────────────────────────────────────────────────────────────────────────────────────

/** Parameters as they were read: bits are -1 where they are absent, 0 where they have no value. */
interface ReadParameters {
  serverNoContextTakeover: boolean
  clientNoContextTakeover: boolean
  serverMaxWindowBits: number
  clientMaxWindowBits: number
}

/** The parameters, or what is wrong with them. */
function readParameters({ parameters }: Extension): ReadParameters | string {
  const read: ReadParameters = {
    serverNoContextTakeover: false,
    clientNoContextTakeover: false,
    serverMaxWindowBits: -1,
    clientMaxWindowBits: -1,
  }
  const seen = new Set<string>()
  for (const { name, value } of parameters) {
    if (seen.has(name)) return `${name} twice`
    seen.add(name)
    if (name === 'server_no_context_takeover' || name === 'client_no_context_takeover') {
      if (value !== undefined) return `${name} with a value`
      if (name === 'server_no_context_takeover') read.serverNoContextTakeover = true
      else read.clientNoContextTakeover = true
    } else if (name === 'server_max_window_bits' || name === 'client_max_window_bits') {
      const bits = windowBits(value)
      // RFC 7692 §7.1.2.1: the server's always has a value.
      if (bits < 0 || (bits === 0 && name === 'server_max_window_bits')) return `bad value of ${name}`
      if (name === 'server_max_window_bits') read.serverMaxWindowBits = bits
      else read.clientMaxWindowBits = bits
    } else return `unknown parameter ${name}`
  }
  return read
}

/** 8–15; 0: there is no value; -1: a bad one. RFC 7692 §7.1.2: no leading zeros. */
function windowBits(value: string | undefined): number {
  if (value === undefined) return 0
  return /^(?:[89]|1[0-5])$/.test(value) ? Number(value) : -1
}

function checkBits(bits: number | undefined, name: string): void {
  if (bits !== undefined && !(Number.isInteger(bits) && bits >= leastBits && bits <= allBits)) {
    throw new UsageError(`${name} is ${leastBits} to ${allBits}, and this is ${bits}`)
  }
}

/** What a codec of this side has to do for `parameters`. */
export function codecSettings(role: 'client' | 'server', parameters: DeflateParameters): CodecSettings {
  const { serverNoContextTakeover, clientNoContextTakeover, serverMaxWindowBits, clientMaxWindowBits } = parameters
  const isServer = role === 'server'
  const ownBits = isServer ? serverMaxWindowBits : clientMaxWindowBits
  const peerBits = isServer ? clientMaxWindowBits : serverMaxWindowBits
  return {
    deflateWindowBits: ownBits < leastBits ? 0 : ownBits,
    deflateTakeover: !(isServer ? serverNoContextTakeover : clientNoContextTakeover),
    // A larger window inflates what was made with a smaller one.
    inflateWindowBits: Math.max(leastBits, peerBits),
    inflateTakeover: !(isServer ? clientNoContextTakeover : serverNoContextTakeover),
  }
}
