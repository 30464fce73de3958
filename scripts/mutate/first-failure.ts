import { inspect } from 'node:util'

type Told = { type: string; data: { name?: string; details?: { error?: { cause?: unknown } } } }

/** A test reporter that prints the first failing test and the reason. The probe and the exit code report the rest. */
export default async function* firstFailure(source: AsyncIterable<Told>): AsyncGenerator<string> {
  let isTold = false
  for await (const { type, data } of source) {
    const error = data.details?.error
    if (type !== 'test:fail' || isTold) continue
    isTold = true
    yield `${data.name}: ${inspect(error?.cause ?? error, { breakLength: 120, depth: 4 })}\n`
  }
}
