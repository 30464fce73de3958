import type { TestEvent } from 'node:test/reporters'

/** A reporter: each test file and the seconds that it took, a line each. A file is a suite of the process that it shares. */
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
