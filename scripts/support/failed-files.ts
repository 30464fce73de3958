import type { TestEvent } from 'node:test/reporters'

/** A reporter: the file of each test that failed, a line each. A suite that fails by its tests is left out. */
export default async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || !data.file) continue
    const { failureType } = data.details.error as { failureType?: string }
    if (failureType !== 'subtestsFailed') yield `${data.file}\n`
  }
}
