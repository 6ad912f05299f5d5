import { UsageError } from '../http/index.ts'

/*
 * The life of one message on an HTTP/1.1 connection. A connection has two at a time, the one it
 * receives and the one it sends; both roles and both directions follow the same table.
 *
 *    Informational          Content
 *       ┌───┐                ┌───┐
 *       │   ▼                │   ▼
 *      ┌─────┐     Head     ┌───────┐     End, Trailers     ┌─────┐
 *   ┌─▶│Head ├─────────────▶│Content├──────────────────────▶│Ended│
 *   │  └─┬─┬─┘              └───────┘                       └┬─┬──┘
 *   │    │ └───────────────────HeadOnly─────────────────────▶│ │
 *   │    │ Ask    ┌───────┐               Refuse             │ │
 *   │    ├───────▶│Waiting├──────────────────────────────────┤ │
 *   │    │        └───┬───┘                                  │ │
 *   │    │ Open       │ Open                                 │ │
 *   │    └────────▶┌──▼───┐               End                │ │
 *   │              │Tunnel├──────────────────────────────────┘ │
 *   │              └──────┘                                    │
 *   └──────────────────────────Next────────────────────────────┘
 *
 * A tunnel's request (CONNECT, Upgrade) waits after its head until the response opens or refuses the
 * tunnel; a tunnel's response goes from Head to Tunnel at once.
 */
export const Phase = { Head: 0, Content: 1, Waiting: 2, Tunnel: 3, Ended: 4 } as const
export type Phase = (typeof Phase)[keyof typeof Phase]

/** What moves a message on. */
export const Step = {
  /** A 1xx head. */
  Informational: 0,
  /** A head that content follows. */
  Head: 1,
  /** A head that ends its message. */
  HeadOnly: 2,
  /** The head of CONNECT or Upgrade. */
  Ask: 3,
  /** The response lets the tunnel begin. */
  Open: 4,
  /** The response does not. */
  Refuse: 5,
  Content: 6,
  End: 7,
  Trailers: 8,
  /** The exchange is over and the connection can carry another. */
  Next: 9,
} as const
export type Step = (typeof Step)[keyof typeof Step]

const wrong = -1
const stepNames = Object.keys(Step)
const phaseNames = Object.keys(Phase)
const width = stepNames.length

/** `table[phase][step]`: where it leads, or -1. */
const table = new Int8Array(phaseNames.length * width).fill(wrong)
const allow = (phase: Phase, step: Step, to: Phase): void => {
  table[phase * width + step] = to
}
allow(Phase.Head, Step.Informational, Phase.Head)
allow(Phase.Head, Step.Head, Phase.Content)
allow(Phase.Head, Step.HeadOnly, Phase.Ended)
allow(Phase.Head, Step.Ask, Phase.Waiting)
allow(Phase.Head, Step.Open, Phase.Tunnel)
allow(Phase.Content, Step.Content, Phase.Content)
allow(Phase.Content, Step.End, Phase.Ended)
allow(Phase.Content, Step.Trailers, Phase.Ended)
// What is sent into a tunnel before the answer is held back.
allow(Phase.Waiting, Step.Content, Phase.Waiting)
allow(Phase.Waiting, Step.End, Phase.Waiting)
allow(Phase.Waiting, Step.Open, Phase.Tunnel)
allow(Phase.Waiting, Step.Refuse, Phase.Ended)
allow(Phase.Tunnel, Step.Content, Phase.Tunnel)
allow(Phase.Tunnel, Step.End, Phase.Ended)
allow(Phase.Ended, Step.Next, Phase.Head)

/** True if `step` may be taken in `phase`. */
export function allows(phase: Phase, step: Step): boolean {
  return table[phase * width + step] !== wrong
}

/** Where `step` leads from `phase`. Throws UsageError if it may not be taken there. */
export function advance(phase: Phase, step: Step): Phase {
  const to = table[phase * width + step] as number
  if (to === wrong) throw new UsageError(`${stepNames[step]} in phase ${phaseNames[phase]}`)
  return to as Phase
}
