import { resolve } from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { isTestFile } from './file-seconds.ts'

/** A reporter: the file of each test that failed, a line each. A suite that fails by its tests is left out. */
export default async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || !data.file) continue
    const { failureType } = data.details.error as { failureType?: string }
    if (failureType === 'subtestsFailed') continue
    // A file that failed as a whole is a suite with its name (test-queue.ts).
    yield `${isTestFile(data.name) ? resolve(data.name) : data.file}\n`
  }
}
