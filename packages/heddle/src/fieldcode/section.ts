import { Head, isAuthority, isPath, isToken, noFields, noLength, parseLength, type Fields } from '../http/index.ts'
import { Kind, type Entry } from './entry.ts'

/** What a field section is the head, or the tail, of. */
export const SectionRole = { Request: 0, Response: 1, Trailers: 2 } as const
export type SectionRole = (typeof SectionRole)[keyof typeof SectionRole]

/** Limits while a field section is read; see `limits.md`'s defaults in the protocols' limits. */
export interface SectionLimits {
  /** Field lines, cookie crumbs counted one by one. */
  readonly maxFieldLines: number
  /** Name + value + 32 of all lines, octets. */
  readonly maxFieldSectionSize: number
  /** Name + value of one line, octets. */
  readonly maxFieldLineSize: number
}

/** One field section, read and judged. Shared between messages that repeat it: immutable. */
export interface FieldSection {
  /** The head; undefined for trailers, and where `fault` says why. */
  readonly head: Head | undefined
  /** The trailer fields, or those of the head. */
  readonly fields: Fields
  /** Why the message is malformed (RFC 9113 §8.1.1), or empty. */
  readonly fault: string
  /** A limit was exceeded: 431. What came before it was judged all the same. */
  readonly tooLarge: boolean
  readonly contentLength: number
  /** Value of the `priority` field, or empty. */
  readonly priority: string
  /** The client waits for a 100 before it sends content. */
  readonly expectContinue: boolean
}

/**
 * Makes a message's head of field lines, for HTTP/2 and HTTP/3 alike, by the rules of RFC 9113 §8.3
 * (RFC 9114 §4.3). One per connection, used for one section after the other.
 */
export class SectionReader {
  readonly #limits: SectionLimits
  #role: SectionRole
  #fields: string[]
  #fault: string
  #tooLarge: boolean
  #lines: number
  #size: number
  /** Pseudo-header fields there were: bits by kind. */
  #seen: number
  #method: string
  #scheme: string
  #authority: string | undefined
  #path: string
  #protocol: string
  #status: number
  #host: string | undefined
  #contentLength: number
  #priority: string
  #expectContinue: boolean

  constructor(limits: SectionLimits) {
    this.#limits = limits
    this.#role = SectionRole.Request
    this.#fields = []
    this.#fault = ''
    this.#tooLarge = false
    this.#lines = 0
    this.#size = 0
    this.#seen = 0
    this.#method = ''
    this.#scheme = ''
    this.#authority = undefined
    this.#path = ''
    this.#protocol = ''
    this.#status = 0
    this.#host = undefined
    this.#contentLength = noLength
    this.#priority = ''
    this.#expectContinue = false
  }

  start(role: SectionRole): void {
    this.#role = role
    this.#fields = []
    this.#fault = ''
    this.#tooLarge = false
    this.#lines = 0
    this.#size = 0
    this.#seen = 0
    this.#method = ''
    this.#scheme = ''
    this.#authority = undefined
    this.#path = ''
    this.#protocol = ''
    this.#status = 0
    this.#host = undefined
    this.#contentLength = noLength
    this.#priority = ''
    this.#expectContinue = false
  }

  /** Adds one line. Past a limit or a fault nothing is kept, so a bomb of tiny references costs no memory. */
  add(entry: Entry): void {
    const { name, value, kind } = entry
    this.#lines++
    this.#size += name.length + value.length + 32
    const limits = this.#limits
    if (
      this.#lines > limits.maxFieldLines ||
      this.#size > limits.maxFieldSectionSize ||
      name.length + value.length > limits.maxFieldLineSize
    ) {
      this.#tooLarge = true
    }
    if (this.#fault !== '') return
    if (kind === Kind.Malformed) return this.#fail(`malformed field line ${JSON.stringify(name.slice(0, 64))}`)
    if (this.#tooLarge) return
    if (kind >= Kind.Authority && kind <= Kind.Status) this.#addPseudo(kind, name, value)
    else if (kind === Kind.Host) this.#addHost(value)
    else {
      if (kind === Kind.ContentLength) {
        // RFC 9110 §8.6: one length.
        if (this.#contentLength !== noLength || this.#role === SectionRole.Trailers) return this.#fail('a second content-length')
        this.#contentLength = parseLength(value)
      } else if (kind === Kind.Priority) this.#priority = value
      else if (kind === Kind.Expect) this.#expectContinue = value.toLowerCase() === '100-continue'
      this.#fields.push(name, value)
    }
  }

  #addPseudo(kind: Kind, name: string, value: string): void {
    // RFC 9113 §8.3: before all regular fields, each once, requests' in requests and :status in responses only.
    if (this.#fields.length > 0 || this.#host !== undefined) return this.#fail(`${name} after a regular field`)
    if (this.#role === SectionRole.Trailers || (kind === Kind.Status) !== (this.#role === SectionRole.Response)) {
      return this.#fail(`${name} does not belong here`)
    }
    if ((this.#seen & (1 << kind)) !== 0) return this.#fail(`${name} twice`)
    this.#seen |= 1 << kind
    switch (kind) {
      case Kind.Authority:
        this.#authority = value
        break
      case Kind.Method:
        this.#method = value
        if (!isToken(value)) this.#fail('a method that is no token')
        break
      case Kind.Path:
        this.#path = value
        break
      case Kind.Scheme:
        this.#scheme = value
        break
      case Kind.Protocol:
        this.#protocol = value
        if (!isToken(value)) this.#fail('a protocol that is no token')
        break
      default:
        this.#status = Number(value)
    }
  }

  #addHost(value: string): void {
    if (this.#role !== SectionRole.Request) this.#fields.push('host', value)
    else if (this.#host !== undefined) this.#fail('host twice')
    else this.#host = value
  }

  #fail(fault: string): void {
    if (this.#fault === '') this.#fault = fault
  }

  /** Judges the whole and returns it. */
  finish(): FieldSection {
    const fields = this.#fields.length === 0 ? noFields : this.#fields
    let head: Head | undefined
    if (this.#role === SectionRole.Request) {
      if (!this.#tooLarge) this.#judgeRequest()
      if (this.#fault === '') {
        head = new Head(this.#method, this.#scheme, this.#authority ?? '', this.#path, this.#protocol, 0, fields)
      }
    } else if (this.#role === SectionRole.Response) {
      // RFC 9113 §8.3.2: exactly one :status; 101 does not exist (RFC 9113 §8.6).
      if (this.#status === 0 && !this.#tooLarge) this.#fail('no :status')
      if (this.#status === 101) this.#fail(':status 101')
      if (this.#fault === '') head = new Head('', '', '', '', '', this.#status, fields)
    }
    return {
      head: this.#tooLarge ? undefined : head,
      fields,
      fault: this.#fault,
      tooLarge: this.#tooLarge,
      contentLength: this.#contentLength,
      priority: this.#priority,
      expectContinue: this.#expectContinue,
    }
  }

  #judgeRequest(): void {
    if (this.#fault !== '') return
    if (this.#method === '') return this.#fail('no :method')
    if (this.#host !== undefined) {
      // RFC 9113 §8.3.1: Host and :authority name the same; Host alone stands for it.
      if (this.#authority === undefined) this.#authority = this.#host
      else if (this.#authority.toLowerCase() !== this.#host.toLowerCase()) return this.#fail('host differs from :authority')
    }
    if (this.#method === 'CONNECT' && this.#protocol === '') {
      // RFC 9113 §8.5: CONNECT has :authority, and neither :scheme nor :path.
      if (this.#scheme !== '' || this.#path !== '') return this.#fail('CONNECT with :scheme or :path')
      if (this.#authority === undefined || !isAuthority(this.#authority)) this.#fail('CONNECT without a usable :authority')
      return
    }
    // RFC 8441 §4: :protocol only with CONNECT.
    if (this.#protocol !== '' && this.#method !== 'CONNECT') return this.#fail(':protocol without CONNECT')
    if (this.#scheme !== 'http' && this.#scheme !== 'https')
      return this.#fail(this.#scheme === '' ? 'no :scheme' : 'a :scheme that is neither http nor https')
    if (this.#path !== '*' || this.#method !== 'OPTIONS') {
      if (!isPath(this.#path)) return this.#fail(this.#path === '' ? 'no :path' : 'a :path that is none')
    }
    // RFC 9113 §8.3.1: no user information, and something to go by (RFC 9110 §7.2).
    if (this.#authority === undefined || !isAuthority(this.#authority)) this.#fail('no usable :authority')
  }
}
