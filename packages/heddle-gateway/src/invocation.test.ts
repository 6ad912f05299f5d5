import assert from 'node:assert/strict'
import { test } from 'node:test'
import { invocation } from './invocation.ts'

const clone = '/home/me/heddle'
const source = ['/usr/bin/node', `${clone}/packages/heddle-gateway/src/bin.ts`, 'demo']
const script = 'exec node --conditions=@heddle/source packages/heddle-gateway/src/bin.ts demo'
const installed = ['/usr/bin/node', '/home/me/app/node_modules/.bin/heddle-gateway', 'demo']
const other = { npm_lifecycle_event: 'test', npm_lifecycle_script: 'node demo.js', npm_config_user_agent: 'npm/11.0.0 node/v26.0.0' }

const cases: readonly [string, readonly string[], Record<string, string>, string][] = [
  [
    'npm start in a clone',
    source,
    { npm_lifecycle_event: 'start', npm_lifecycle_script: script, npm_config_user_agent: 'npm/11.0.0' },
    'npm start -- --port 1',
  ],
  [
    'a script of another name',
    installed,
    { npm_lifecycle_event: 'try', npm_lifecycle_script: 'heddle-gateway demo' },
    'npm run try -- --port 1',
  ],
  [
    'pnpm',
    source,
    { npm_lifecycle_event: 'start', npm_lifecycle_script: script, npm_config_user_agent: 'pnpm/10.0.0 npm/?' },
    'pnpm start --port 1',
  ],
  ['npx', installed, { npm_lifecycle_event: 'npx', npm_lifecycle_script: "'heddle-gateway'" }, 'npx heddle-gateway demo --port 1'],
  ['its name', installed, {}, 'heddle-gateway demo --port 1'],
  ['its name, in the script of something else', installed, other, 'heddle-gateway demo --port 1'],
  ['its file', source, {}, 'node --conditions=@heddle/source packages/heddle-gateway/src/bin.ts demo --port 1'],
]
for (const [how, argv, env, expected] of cases) {
  test(`started by ${how}`, () => {
    const execArgv = argv === source ? ['--conditions=@heddle/source'] : []
    assert.equal(invocation({ argv, execArgv, env, cwd: () => clone }, 'demo', '--port 1'), expected)
  })
}
