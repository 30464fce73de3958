import { resolve } from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { isTestFile } from './file-seconds.ts'

/** A reporter that prints the file of each failed test on a line. A suite that failed only by its tests is left out. */
export default async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || !data.file) continue
    const { failureType } = data.details.error as { failureType?: string }
    if (failureType === 'subtestsFailed') continue
    // If a file failed as a whole, the failed test is the suite that has the file's name (test-queue.ts).
    yield `${isTestFile(data.name) ? resolve(data.name) : data.file}\n`
  }
}
