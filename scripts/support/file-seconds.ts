import type { TestEvent } from 'node:test/reporters'

/** A reporter: each test file and the seconds that it took, a line each. A file is a suite of the process that it shares. */
export default async function* fileSeconds(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:pass' || data.nesting > 0 || !/^test\/\S+\.test\.ts$/.test(data.name)) continue
    yield `${data.name} ${(data.details.duration_ms / 1_000).toFixed(1)}\n`
  }
}
