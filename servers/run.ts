import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Unobtainable } from './debian.ts'
import { startGateway } from './gateway.ts'
import { prepareLlamaCpp } from './llama-cpp.ts'
import { tableOf, writePage } from './page.ts'
import { runSuite } from './suite.ts'

// npm run test:servers [-- --mirror URL]
//
// A real model server, with a model that is written here, behind the real gateway, asked by the official SDKs: nine pairs of
// wires times every feature, and what may befall a server. Prints the table, and writes docs/servers.md. What cannot be
// downloaded is told as SKIPPED, and fails nothing.

const { values } = parseArgs({ options: { mirror: { type: 'string' } } })
const root = join(import.meta.dirname, '..')
const cache = resolve(process.env['TRIWIRE_SERVERS_DIR'] ?? join(root, '.servers'))
mkdirSync(cache, { recursive: true })

const server = await prepareLlamaCpp(cache, values.mirror).catch((error: unknown) => {
  if (!(error instanceof Unobtainable)) throw error
  console.log(`SKIPPED llama.cpp: ${error.message}`)
  process.exit(0)
})
console.log(`${server.name} ${server.version}`)
const folder = mkdtempSync(join(tmpdir(), 'triwire-servers-'))
process.on('exit', () => server.signal('SIGKILL'))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
await server.start()
const gateway = await startGateway(folder, server, 'llama-cpp')

const results = await runSuite(server, gateway, ({ feature, clientWire, modelWire, verdict, words }) => {
  if (verdict === 'ours') console.log(`FAILED ${feature}, ${clientWire}→${modelWire}: ${words.join('; ')}`)
}).finally(async () => {
  await gateway.stop()
  await server.stop()
})
console.log(`\n${tableOf(results)}\n`)
const failed = results.cells.filter(({ verdict }) => verdict === 'ours')
console.log(`${results.billed} answers, of which the ledger has other figures for ${results.differing.length}`)
for (const difference of results.differing) console.log(`FAILED ${difference}`)
if (results.findings.length > 0) console.log(`FAILED ledger verify: ${JSON.stringify(results.findings)}`)
writeFileSync(join(root, 'docs/servers.md'), writePage(results))
const isFine = failed.length === 0 && results.differing.length === 0 && results.findings.length === 0
console.log(`${isFine ? 'all ours pass' : `${failed.length} cells failed, see ${folder}`}, ${results.seconds} s`)
process.exitCode = isFine ? 0 : 1
