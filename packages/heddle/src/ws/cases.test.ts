import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { webSocketCases } from '../testing/websocket/cases.ts'
import { PlayedPeer } from '../testing/websocket/played-peer.ts'
import { peersOf, runCase, usefulCuts } from '../testing/websocket/run-case.ts'

for (const heading of new Set(webSocketCases.map((played) => played.heading))) {
  suite(heading, () => {
    for (const played of webSocketCases.filter((candidate) => candidate.heading === heading)) {
      for (const peer of peersOf(played)) {
        test(`${played.name} (from a ${peer})`, () => {
          for (const cuts of usefulCuts(new PlayedPeer(played, peer).octets.length)) runCase(played, peer, cuts)
        })
      }
    }
  })
}

test('every chapter of the Autobahn suite has cases', () => {
  const chapters = new Set(webSocketCases.map(({ heading }) => Number.parseInt(heading, 10)))
  // 8 and 11 do not exist.
  assert.deepEqual([...chapters], [1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13])
  assert.ok(webSocketCases.length > 300, `${webSocketCases.length} cases`)
})
