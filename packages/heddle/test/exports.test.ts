import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import * as client from 'heddle/client'
import * as main from 'heddle'
import * as server from 'heddle/server'

test('limits can be had where they are options', () => {
  // What a program writes to raise one of them, from each door.
  const limits: Partial<main.Http1Limits & client.Http1Limits & server.Http1Limits> = { idleTimeout: main.serverLimits.idleTimeout * 2 }
  assert.deepEqual(limits, { idleTimeout: 120_000 })
  assert.equal(main.serverLimits, server.serverLimits)
  assert.equal(main.clientLimits, client.clientLimits)
  assert.equal(main.clientLimits.idleTimeout, 4_000)
})

const sources = join(import.meta.dirname, '../src')

/** Every name that a file exports by `export { … } from`. */
function reexported(door: string): string[] {
  const text = readFileSync(join(sources, door), 'utf8')
  return [...text.matchAll(/export (?:type )?\{([^}]*)\} from/g)].flatMap(([, names = '']) =>
    names
      .split(',')
      .map((name) =>
        name
          .trim()
          .replace(/^type /, '')
          .replace(/ as .*$/, ''),
      )
      .filter((name) => name !== ''),
  )
}

test('whatever can be imported says what it is', () => {
  const doors = [
    'index.ts',
    ...['client', 'server', 'http', 'io', 'testing', 'web', 'websocket', 'ws'].map((room) => join(room, 'index.ts')),
  ]
  const names = new Set(doors.flatMap(reexported))
  const silent: string[] = []
  let found = 0
  for (const path of globSync('**/*.ts', { cwd: sources })) {
    if (path.endsWith('.test.ts') || path.endsWith('index.ts')) continue
    const lines = readFileSync(join(sources, path), 'utf8').split('\n')
    for (const [i, line] of lines.entries()) {
      const [, name] = /^export (?:abstract |async )*(?:interface|type|class|function|const|let) (\w+)/.exec(line) ?? []
      if (name === undefined || !names.has(name)) continue
      found++
      // The type of a constant's values has the constant's docstring.
      const isCompanion = line.startsWith(`export type ${name} = (typeof ${name})`)
      if (!isCompanion && !lines[i - 1]?.trimEnd().endsWith('*/')) silent.push(`${path}:${i + 1}: ${name}`)
    }
  }
  assert.deepEqual(silent, [])
  assert.ok(found > 150, `${found} declarations`)
})
