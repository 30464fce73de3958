import type { TestEvent } from 'node:test/reporters'

/** A reporter that prints each test file with its seconds on a line. Each file is a suite of its process. */
export default async function* fileSeconds(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:pass' || data.nesting > 0 || !isTestFile(data.name)) continue
    yield `${data.name} ${(data.details.duration_ms / 1_000).toFixed(1)}\n`
  }
}

/** Whether this is the name of a test file: a path from the root. */
export function isTestFile(name: string): boolean {
  return /^test\/\S+\.test\.ts$/.test(name)
}
