/**
 * Whether something the peer must hear of has been said, and in which packet: one number tells.
 *
 *     unset ──set──► unsent ──onSent(n)──► sent in n ──onAcked──► received
 *                      ▲                       │
 *                      └────────onLost(n)──────┘
 *
 * What changes (MAX_DATA) is `set` again with every change and uses `onAckedLatest`; what never changes
 * (HANDSHAKE_DONE) may have been sent twice, and `onAcked` of either packet is enough.
 */
export class SentValue {
  #state: number

  constructor() {
    this.#state = unset
  }

  /** There is something to tell, told or not. */
  get isSet(): boolean {
    return this.#state !== unset
  }

  /** It waits for the next packet. */
  get isDue(): boolean {
    return this.#state === unsent
  }

  /** It went with a packet of which nothing is known yet. */
  get isInFlight(): boolean {
    return this.#state >= 0 && this.#state !== received
  }

  /** The peer has it. */
  get isReceived(): boolean {
    return this.#state === received
  }

  /** There is something new to tell. */
  set(): void {
    this.#state = unsent
  }

  /** There is nothing to tell (any more). */
  clear(): void {
    this.#state = unset
  }

  /** Packet `packetNumber` tells it. */
  onSent(packetNumber: number): void {
    this.#state = packetNumber
  }

  /** A packet that told it, be it the latest or not, was acknowledged. */
  onAcked(): void {
    if (this.#state !== unset) this.#state = received
  }

  /** Packet `packetNumber` was acknowledged; what was told by an older one is not what is to be told now. */
  onAckedLatest(packetNumber: number): void {
    if (this.#state === packetNumber) this.#state = received
  }

  /** Packet `packetNumber` is lost; an older one than the latest matters no more. */
  onLost(packetNumber: number): void {
    if (this.#state === packetNumber) this.#state = unsent
  }
}

const unset = -2
const unsent = -1
/** Behind every packet number. */
const received = Infinity
