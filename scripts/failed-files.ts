/** A reporter of Node's test runner: the path of every file in which a test failed, a line each. */
import type { TestEvent } from 'node:test/reporters'

export default async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type === 'test:fail' && event.data.file !== undefined) yield `${event.data.file}\n`
  }
}
