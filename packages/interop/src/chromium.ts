/** Headless Chromium, driven by the DevTools protocol over a pipe. */
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { tool } from './tools.ts'

const program = tool('chromium')

/** A response as the browser's network saw it. */
export interface Seen {
  readonly url: string
  readonly status: number
  /** `h2`, `http/1.1`, … */
  readonly protocol: string
  /** The same for all on one connection. */
  readonly connectionId: number
}

interface Message {
  readonly id?: number
  readonly method?: string
  readonly sessionId?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

/** A browser with a profile of its own that ends with its test. It takes the certificate `trusted` for good, and no other unknown one. */
export class Browser {
  readonly #child: ChildProcess
  readonly #profile: string
  readonly #waiting: Map<number, { resolve: (result: Record<string, unknown>) => void; reject: (error: Error) => void }>
  readonly #listeners: Map<string, (method: string, params: Record<string, unknown>) => void>
  #last: number
  #errors: string

  constructor(t: TestContext, trusted: string, flags: readonly string[] = ['--disable-quic']) {
    const key = new X509Certificate(trusted).publicKey.export({ type: 'spki', format: 'der' })
    this.#profile = mkdtempSync(join(tmpdir(), 'heddle-chromium-'))
    this.#waiting = new Map()
    this.#listeners = new Map()
    this.#last = 0
    this.#errors = ''
    const words = [
      '--headless=new',
      '--no-sandbox', // It will not run as root otherwise.
      '--remote-debugging-pipe',
      `--user-data-dir=${this.#profile}`,
      `--ignore-certificate-errors-spki-list=${createHash('sha256').update(key).digest('base64')}`,
      '--no-first-run',
      '--no-default-browser-check',
      '--no-proxy-server',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      // Nothing but what the tests ask for.
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-default-apps',
      '--disable-extensions',
      '--disable-sync',
      '--metrics-recording-only',
      ...flags,
      'about:blank',
    ]
    this.#child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] })
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.#errors = (this.#errors + chunk.toString()).slice(-10_000)))
    this.#read(this.#child.stdio[4] as Readable)
    ;(this.#child.stdio[3] as Writable).on('error', () => {})
    this.#child.on('close', (status) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`Chromium ended with ${status}: ${this.#errors}`))
      this.#waiting.clear()
    })
    t.after(() => this.close())
  }

  #read(pipe: Readable): void {
    let rest = ''
    pipe.setEncoding('utf8')
    pipe.on('data', (chunk: string) => {
      const parts = (rest + chunk).split('\0')
      rest = parts.pop() as string
      for (const part of parts) this.#receive(JSON.parse(part) as Message)
    })
  }

  #receive({ id, method, sessionId = '', params = {}, result = {}, error }: Message): void {
    if (method !== undefined) this.#listeners.get(sessionId)?.(method, params)
    if (id === undefined) return
    const waiter = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiter?.resolve(result)
    else waiter?.reject(new Error(error.message))
  }

  /** One command of the DevTools protocol. */
  command(method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> {
    const id = ++this.#last
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
    this.#waiting.set(id, { resolve, reject })
    ;(this.#child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) })}\0`)
    return promise
  }

  /** An empty tab. */
  async open(): Promise<Page> {
    const { targetId } = await this.command('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await this.command('Target.attachToTarget', { targetId, flatten: true })
    const page = new Page(this, sessionId as string)
    this.#listeners.set(sessionId as string, (method, params) => page.hear(method, params))
    for (const domain of ['Network', 'Page', 'Runtime']) await this.command(`${domain}.enable`, {}, sessionId as string)
    return page
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'close')
      const forced = setTimeout(() => this.#child.kill('SIGKILL'), 5000)
      this.command('Browser.close').catch(() => {})
      await ended
      clearTimeout(forced)
    }
    // Some helper of its own may still be writing there.
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

/** A tab. */
export class Page {
  /** What was loaded, in the order in which it came. */
  readonly seen: Seen[]
  /** What the page said went wrong: failed loads, uncaught errors, `console.error`. */
  readonly complaints: string[]
  readonly #browser: Browser
  readonly #session: string
  #loaded: () => void

  constructor(browser: Browser, session: string) {
    this.seen = []
    this.complaints = []
    this.#browser = browser
    this.#session = session
    this.#loaded = () => {}
  }

  /** An event of the DevTools protocol. */
  hear(method: string, params: Record<string, unknown>): void {
    switch (method) {
      case 'Network.responseReceived': {
        const { url, status, protocol, connectionId } = params['response'] as Seen
        this.seen.push({ url, status, protocol, connectionId })
        break
      }
      case 'Network.loadingFailed':
        if (params['canceled'] !== true) this.complaints.push(String(params['errorText']))
        break
      case 'Runtime.exceptionThrown':
        this.complaints.push(JSON.stringify(params['exceptionDetails']))
        break
      case 'Runtime.consoleAPICalled':
        if (params['type'] === 'error') this.complaints.push(JSON.stringify(params['args']))
        break
      case 'Page.loadEventFired':
        this.#loaded()
    }
  }

  /** Goes to `url`; resolves when everything the page names is loaded. */
  async go(url: string): Promise<void> {
    const loaded = new Promise<void>((resolve) => (this.#loaded = resolve))
    const { errorText } = await this.#browser.command('Page.navigate', { url }, this.#session)
    if (errorText !== undefined) throw new Error(`${url}: ${String(errorText)}`)
    await loaded
  }

  /** What an expression comes to, or the promise it is; only JSON can leave the page. */
  async evaluate(expression: string): Promise<unknown> {
    const words = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = await this.#browser.command('Runtime.evaluate', words, this.#session)
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
    return (result as { value: unknown }).value
  }
}
