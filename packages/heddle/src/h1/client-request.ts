/** What a client has to remember of its current request. */
export class ClientRequest {
  /** Empty until the head was sent. */
  method: string
  /** What it asks to switch to, or empty. */
  protocol: string
  websocketKey: string
  /** 1xx responses to it. */
  informational: number
  /** Content is held back until a 100, a final head, or the time limit. */
  awaitsContinue: boolean
  /** The tunnel's sending end was closed before the tunnel was open. */
  endsOnOpen: boolean
  /** The rest of the content is not sent. */
  refused: boolean

  constructor() {
    this.method = ''
    this.protocol = ''
    this.websocketKey = ''
    this.informational = 0
    this.awaitsContinue = false
    this.endsOnOpen = false
    this.refused = false
  }
}
