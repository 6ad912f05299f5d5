import { fieldValue, type Fields } from '../http/index.ts'

/** Fields that were seen lately, and what they became. */
const remembered = 64

/**
 * Adds `alt-svc` to responses over HTTP/1.1 and HTTP/2, so that clients come by HTTP/3 the next time
 * (RFC 7838). Fields are arrays nobody changes: what was added to one before is not added again, and
 * engines recognise the head.
 */
export class Advertiser {
  readonly #value: string
  readonly #from: (Fields | undefined)[]
  readonly #to: (Fields | undefined)[]
  #next: number

  /** `port`: where HTTP/3 is served. */
  constructor(port: number) {
    this.#value = `h3=":${port}"; ma=86400`
    this.#from = Array.from({ length: remembered })
    this.#to = Array.from({ length: remembered })
    this.#next = 0
  }

  /** `fields` with `alt-svc`, unless the handler has said something of it itself. */
  add(fields: Fields): Fields {
    const known = this.#from.indexOf(fields)
    if (known >= 0) return this.#to[known] as Fields
    const added = fieldValue(fields, 'alt-svc') !== undefined ? fields : [...fields, 'alt-svc', this.#value]
    this.#from[this.#next] = fields
    this.#to[this.#next] = added
    this.#next = (this.#next + 1) % remembered
    return added
  }
}
