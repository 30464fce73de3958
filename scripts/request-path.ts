import { Session } from 'node:inspector/promises'
import { fileURLToPath } from 'node:url'
import { startTestGateway } from '../test/support/gateway.ts'

// node bin/node.mjs scripts/request-path.ts [--list]
//
// Counts the files of `src` that run on the serving thread for one warm request, by V8's precise coverage. Files of the
// simulator are left out. A file counts if it ran in each of nine measured requests, so that timers of other parts do
// not count.

const src = new URL('../src/', import.meta.url).href
const warmups = 30
const runs = 9
const isListing = process.argv.includes('--list')

const gateway = await startTestGateway()
const text = 'Say hello.'
const cases = {
  'messages, JSON, same wire': ['/v1/messages', { model: 'native-messages', max_tokens: 64 }],
  'chat, stream, same wire': ['/v1/chat/completions', { model: 'native-chat', stream: true }],
  'messages → chat, stream': ['/v1/messages', { model: 'native-chat', max_tokens: 64, stream: true }],
} as const
for (const [name, [path, fields]] of Object.entries(cases)) {
  const body = JSON.stringify({ ...fields, messages: [{ role: 'user', content: text }] })
  const { files, functions } = await measure(() => ask(path, body))
  console.log(`${name}: ${files.length} files, ${functions} functions`)
  if (isListing) console.log(files.map((file) => `  ${file}`).join('\n'))
}
await gateway.close()

async function ask(path: string, body: string): Promise<void> {
  const response = await gateway.post(path, body)
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}

/** @returns the files that ran in all requests, and the smallest number of functions that ran in one */
async function measure(request: () => Promise<void>): Promise<{ files: string[]; functions: number }> {
  for (let run = 0; run < warmups; run++) await request()
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const counts = new Map<string, number>()
  let functions = Number.POSITIVE_INFINITY
  for (let run = 0; run < runs; run++) {
    await session.post('Profiler.takePreciseCoverage')
    await request()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    let ran = 0
    for (const { url, functions: all } of result) {
      if (!url.startsWith(src) || url.startsWith(`${src}simulator/`)) continue
      const called = all.filter(({ ranges }) => ranges[0]!.count > 0).length
      ran += called
      if (called > 0) counts.set(url, (counts.get(url) ?? 0) + 1)
    }
    functions = Math.min(functions, ran)
  }
  session.disconnect()
  const root = fileURLToPath(new URL('..', import.meta.url))
  const files = [...counts].filter(([, count]) => count === runs).map(([url]) => fileURLToPath(url).slice(root.length))
  return { files: files.sort(), functions }
}
