import assert from 'node:assert/strict'
import { test } from 'node:test'
import { advance, allows, Phase, Step } from './state.ts'

test('the table is the one of the drawing', () => {
  const drawn: [Phase, Step, Phase][] = [
    [Phase.Head, Step.Informational, Phase.Head],
    [Phase.Head, Step.Head, Phase.Content],
    [Phase.Head, Step.HeadOnly, Phase.Ended],
    [Phase.Head, Step.Ask, Phase.Waiting],
    [Phase.Head, Step.Open, Phase.Tunnel],
    [Phase.Content, Step.Content, Phase.Content],
    [Phase.Content, Step.End, Phase.Ended],
    [Phase.Content, Step.Trailers, Phase.Ended],
    [Phase.Waiting, Step.Content, Phase.Waiting],
    [Phase.Waiting, Step.End, Phase.Waiting],
    [Phase.Waiting, Step.Open, Phase.Tunnel],
    [Phase.Waiting, Step.Refuse, Phase.Ended],
    [Phase.Tunnel, Step.Content, Phase.Tunnel],
    [Phase.Tunnel, Step.End, Phase.Ended],
    [Phase.Ended, Step.Next, Phase.Head],
  ]
  for (const phase of Object.values(Phase)) {
    for (const step of Object.values(Step)) {
      const leads = drawn.find(([from, by]) => from === phase && by === step)
      assert.equal(allows(phase, step), leads !== undefined)
      if (leads !== undefined) assert.equal(advance(phase, step), leads[2])
      else assert.throws(() => advance(phase, step), { code: 'USAGE' })
    }
  }
})
