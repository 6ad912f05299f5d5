import { describe } from 'node:test'
import { endingCases } from './conformance/endings.ts'
import { flowCases } from './conformance/flow.ts'
import { interleavingCases } from './conformance/interleavings.ts'
import { messageCases } from './conformance/messages.ts'
import { Stage, type ConformanceCase, type ConformanceProtocol } from './conformance/stage.ts'
import { timeLimitCases } from './conformance/time-limits.ts'
import { tunnelCases } from './conformance/tunnels.ts'
import { worldTest } from './seeds.ts'

/** What every exchange must do, whatever its protocol. */
const groups: Readonly<Record<string, readonly ConformanceCase[]>> = {
  messages: messageCases,
  'flow control': flowCases,
  endings: endingCases,
  tunnels: tunnelCases,
  'time limits': timeLimitCases,
  interleavings: interleavingCases,
}

/** What of {@link exchangeConformance} is run. */
export interface ConformanceOptions {
  /** Cases a protocol cannot pass, each with the reason. A name that is no case fails. */
  readonly skip?: Readonly<Record<string, string>>
  /** Seeds per case. Default 5; interleavings run ten times as many. */
  readonly seeds?: number
}

/**
 * The one suite of exchange behaviour: registers `node:test` tests that run a client and a server of
 * `protocol` against each other, over links of every kind. After each case every exchange must have
 * had exactly one `onClose`, the connection must be closed, and no alarm may be left.
 */
export function exchangeConformance(name: string, protocol: ConformanceProtocol, options: ConformanceOptions = {}): void {
  const { skip = {}, seeds = 5 } = options
  const names = new Set(Object.values(groups).flatMap((cases) => cases.map((one) => one.name)))
  for (const skipped of Object.keys(skip)) if (!names.has(skipped)) throw new Error(`no such conformance case: ${skipped}`)
  for (const [group, cases] of Object.entries(groups)) {
    void describe(`${name}: ${group}`, () => {
      for (const one of cases) {
        const reason = skip[one.name]
        worldTest(
          one.name,
          { seeds: group === 'interleavings' ? seeds * 10 : seeds, ...(reason === undefined ? {} : { skip: reason }) },
          (world) => {
            const stage = new Stage(world, protocol, one.options)
            one.run(stage)
            stage.finish()
          },
        )
      }
    })
  }
}
