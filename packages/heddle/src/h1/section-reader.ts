import { ProtocolError } from '../http/index.ts'
import { hashStep, startHash, type LineCache } from './line-cache.ts'
import { LineCarry } from './line-carry.ts'
import type { Http1Limits } from './limits.ts'
import { Run, type RunMemo } from './run-memo.ts'
import { SectionBuilder, tooLarge, type FieldSection } from './section.ts'

const lf = 0x0a
const cr = 0x0d
/** RFC 9112 §2.2: a server ignores at least one empty line before a request. */
const mostEmptyLines = 4
/** Runs of one section that a connection expects to see again. */
const mostExpected = 4
/** Octets of a section that a connection keeps to know it again. */
const longestOwn = 2048
const mostPatience = 255

/** How a role reads its start line; `Line` is what comes of it, `Message` what the memo keeps with a section. */
export interface StartLineSyntax<Line extends object, Message extends object> {
  read(buffer: Uint8Array, start: number, limit: number): Line | ProtocolError
  isCacheable(line: Line): boolean
  /** What is wrong with a start line that is too long. */
  tooLong(): ProtocolError
  /** Empty lines before it are skipped. */
  readonly skipsEmptyLines: boolean
  readonly cache: LineCache<Line>
  readonly memo: RunMemo<Message>
}

/**
 * Reads a start line and its field section from bytes that come in any pieces; without a syntax, a
 * field section alone (trailers). Lines that are complete in the received buffer are read where they
 * stand; only an unfinished line is copied.
 */
export class SectionReader<Line extends object, Message extends object> {
  line: Line | undefined
  /** Set by `read` when the empty line was read; `next` makes ready for the following one. */
  section: FieldSection | undefined
  /** What the memo has for the whole section, if it has it. */
  whole: Run<Message> | undefined
  /** Set by `read` when the bytes are refused; nothing can be read after it. */
  fault: ProtocolError | undefined
  private readonly syntax: StartLineSyntax<Line, Message> | undefined
  private readonly limits: Http1Limits
  private readonly builder: SectionBuilder
  private readonly carry: LineCarry
  /** The runs of the section before, in order: the likeliest ones. */
  private readonly expected: (Run<Message> | undefined)[]
  /**
   * The whole section before, if it has lines that no memo may share, as Cookie: a client sends the same
   * ones again and again, and here nobody sees them but the connection they came on.
   */
  private own: Run<Message> | undefined
  /** How many such sections are passed over before one is kept, and how many still are: for those that always differ. */
  private patience: number
  private waits: number
  /** Runs begun in this section. */
  private runCount: number
  /** What comes next begins a run: it follows the start line or an individual line. */
  private atRun: boolean
  private emptyLines: number

  constructor(syntax: StartLineSyntax<Line, Message> | undefined, limits: Http1Limits) {
    this.line = undefined
    this.section = undefined
    this.whole = undefined
    this.fault = undefined
    this.syntax = syntax
    this.limits = limits
    this.builder = new SectionBuilder(limits, syntax === undefined)
    this.carry = new LineCarry()
    this.expected = []
    this.own = undefined
    this.patience = 0
    this.waits = 0
    this.runCount = 0
    this.atRun = false
    this.emptyLines = 0
  }

  /** True between the first octet and the end. */
  get started(): boolean {
    return this.line !== undefined || this.carry.length > 0
  }

  next(): void {
    this.line = undefined
    this.section = undefined
    this.whole = undefined
  }

  /** Lets go of everything: nothing will be read any more. */
  drop(): void {
    this.next()
    this.own = undefined
    this.carry.clear()
    this.builder.reset()
  }

  /**
   * Reads on at `at` and returns where it stopped: behind the empty line if `section` is set then, at
   * `limit` if more is needed or `fault` is set.
   */
  read(buffer: Uint8Array, at: number, limit: number): number {
    // Where the run began that is being read, if that is in this buffer.
    let runStart = -1
    // Likewise the section.
    let sectionStart = -1
    while (at < limit) {
      if (this.atRun && this.carry.length === 0) {
        this.atRun = false
        if (this.runCount === 0) {
          if (this.recallOwn(buffer, at, limit)) return at + (this.own as Run<Message>).bytes.length
          sectionStart = at
        }
        const run = this.recall(buffer, at, limit)
        if (run !== undefined) at += run.bytes.length
        if (this.fault !== undefined) return limit
        if (this.section !== undefined && sectionStart >= 0) this.learnOwn(buffer, sectionStart, at)
        if (this.section !== undefined || at === limit) return at
        runStart = at
        this.builder.startRun()
      }
      let hash = startHash
      let end = at
      for (; end < limit; end++) {
        const octet = buffer[end] as number
        if (octet === lf) break
        hash = hashStep(hash, octet)
      }
      if (end === limit) {
        this.keep(buffer, at, limit)
        return limit
      }
      if (this.carry.length > 0) this.readCarried(buffer, at, end)
      // RFC 9112 §2.2 lets a recipient take a bare LF for a line's end; two that disagree on it can be played off.
      else if (end === at || buffer[end - 1] !== cr) this.fault = bareLineFeed()
      else this.readLine(buffer, at, end - 1, hash)
      if (this.fault !== undefined) return limit
      // The line ended a run: by ending the section, or by being individual.
      if (runStart >= 0 && this.section !== undefined) this.learn(buffer, runStart, end + 1, limit)
      else if (runStart >= 0 && this.atRun) this.learn(buffer, runStart, at, limit)
      at = end + 1
      if (this.section !== undefined && sectionStart >= 0) this.learnOwn(buffer, sectionStart, at)
      if (this.section !== undefined) return at
      if (this.atRun) runStart = -1
    }
    return at
  }

  private readLine(buffer: Uint8Array, start: number, limit: number, hash: number): void {
    if (start === limit) this.readEmptyLine()
    else if (limit - start > this.limits.maxFieldLineSize) this.fault = this.tooLong()
    else if (this.line === undefined && this.syntax !== undefined) this.readStartLine(this.syntax, buffer, start, limit, hash)
    else {
      this.atRun = this.builder.addLine(buffer, start, limit, hash) && this.syntax !== undefined
      this.fault = this.builder.fault
    }
  }

  private readStartLine(syntax: StartLineSyntax<Line, Message>, buffer: Uint8Array, start: number, limit: number, hash: number): void {
    const slot = syntax.cache.slotOf(hash)
    let line = syntax.cache.find(buffer, start, limit, slot)
    if (line === undefined) {
      const read = syntax.read(buffer, start, limit)
      if (read instanceof ProtocolError) {
        this.fault = read
        return
      }
      line = read
      if (syntax.isCacheable(line)) syntax.cache.insert(buffer, start, limit, slot, line)
    }
    this.line = line
    this.emptyLines = 0
    this.runCount = 0
    this.atRun = true
  }

  private readEmptyLine(): void {
    if (this.line !== undefined || this.syntax === undefined) this.section = this.builder.finish()
    else if (!this.syntax.skipsEmptyLines || ++this.emptyLines > mostEmptyLines)
      this.fault = new ProtocolError('empty line instead of a head')
  }

  /** The line began in an earlier piece; its LF is at `end`. */
  private readCarried(buffer: Uint8Array, at: number, end: number): void {
    const { carry } = this
    carry.append(buffer, at, end)
    const { bytes, length } = carry
    if (bytes[length - 1] === cr) {
      let hash = startHash
      for (let i = 0; i < length; i++) hash = hashStep(hash, bytes[i] as number)
      this.readLine(bytes, 0, length - 1, hash)
    } else {
      this.fault = bareLineFeed()
    }
    carry.clear()
  }

  /** The line goes on in the next piece. */
  private keep(buffer: Uint8Array, at: number, limit: number): void {
    // One more than the line, for its CR: what is longer cannot become a line any more.
    if (this.carry.length + limit - at > this.limits.maxFieldLineSize + 1) this.fault = this.tooLong()
    else this.carry.append(buffer, at, limit)
  }

  private tooLong(): ProtocolError {
    return this.line === undefined && this.syntax !== undefined ? this.syntax.tooLong() : tooLarge()
  }

  /** Takes the run that begins at `at`, if it is one that was read before. */
  private recall(buffer: Uint8Array, at: number, limit: number): Run<Message> | undefined {
    const index = this.runCount++
    let run = this.expected[index]
    if (run === undefined || !run.matches(buffer, at, limit)) {
      run = (this.syntax as StartLineSyntax<Line, Message>).memo.find(buffer, at, limit)
      if (run === undefined) return undefined
      this.expect(index, run)
    }
    // It may have been read under wider limits: then line by line, to the fault.
    if (run.section !== undefined && this.builder.isEmpty && run.section.fits(this.limits)) {
      this.section = run.section
      this.whole = run
      return run
    }
    this.builder.addRun(run.lines, run.longestLine, run.size)
    this.fault = this.builder.fault
    if (run.closes && this.fault === undefined) this.section = this.builder.finish()
    return run
  }

  /** Remembers the run `buffer[start, end)`. */
  private learn(buffer: Uint8Array, start: number, end: number, limit: number): void {
    const { syntax } = this
    const { run: lines, longestOfRun } = this.builder
    if (syntax === undefined || lines.length === 0) return
    // The memo keeps the array.
    this.builder.startRun()
    const { section } = this
    const whole = section !== undefined && lines.length === section.lineCount ? section : undefined
    const run = syntax.memo.insert(buffer, start, end, limit, lines, longestOfRun, section !== undefined, whole)
    if (run === undefined) return
    this.expect(this.runCount - 1, run)
    if (whole !== undefined) this.whole = run
  }

  /** Takes the whole section at `at`, if it is the one before over again. */
  private recallOwn(buffer: Uint8Array, at: number, limit: number): boolean {
    const { own } = this
    if (own === undefined || !own.matches(buffer, at, limit)) return false
    own.used = true
    this.section = own.section
    this.whole = own
    return true
  }

  /** Keeps the section `buffer[start, end)`, unless the memo has it. */
  private learnOwn(buffer: Uint8Array, start: number, end: number): void {
    if (this.whole !== undefined || end - start > longestOwn || this.syntax === undefined) return
    if (this.own?.used === false) {
      if (this.waits > 0) {
        this.waits--
        return
      }
      this.waits = this.patience = Math.min(mostPatience, 2 * this.patience + 1)
    } else {
      this.patience = 0
    }
    const bytes = Buffer.allocUnsafeSlow(end - start)
    Buffer.prototype.copy.call(buffer, bytes, 0, start, end)
    this.own = this.whole = new Run<Message>(bytes, [], 0, true, this.section)
  }

  private expect(index: number, run: Run<Message>): void {
    if (index < mostExpected) this.expected[index] = run
  }
}

function bareLineFeed(): ProtocolError {
  return new ProtocolError('line feed without carriage return')
}
