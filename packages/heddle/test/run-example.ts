import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../../../examples/', import.meta.url))

/** Runs an example on a free port, gives its URL and the lines it prints after it, and stops it as an operator would. */
export async function run(
  name: string,
  use: (url: string, lines: AsyncIterator<string>) => Promise<void>,
  words: readonly string[] = [],
): Promise<void> {
  const child: ChildProcess = spawn(process.execPath, ['--conditions=@heddle/source', `${folder}${name}.ts`, ...words], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000)
  try {
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
    const url = (await lines.next()).value as string
    assert.match(url, /^https?:\/\/localhost:\d+$/)
    await use(url, lines)
    child.kill('SIGTERM')
    assert.deepEqual(await exited, [0, null], 'ends by itself once it was told to stop')
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
    await exited
  }
}
