import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Unobtainable } from './debian.ts'
import { startGateway } from './gateway.ts'
import { knownFaults } from './known.ts'
import { prepareLiteLlm } from './litellm.ts'
import { prepareLlamaCpp } from './llama-cpp.ts'
import type { ModelServer } from './model-server.ts'
import { tableOf, writePage } from './page.ts'
import type { Results } from './results.ts'
import { runSuite } from './suite.ts'

// npm run test:servers [-- --mirror URL] [NAME…]
//
// Runs real model servers behind the real gateway. Each server loads the model of servers/model. The official SDKs try
// each feature on the nine pairs of wires, and then faults of the server. Prints a table for each server, and writes
// docs/servers.md. A server that cannot be downloaded is printed as SKIPPED, which is no failure. Its part of the page
// stays unchanged, as do those of servers that are not named.

const { values, positionals } = readArguments()
const root = join(import.meta.dirname, '..')
const page = join(root, 'docs/servers.md')
const cache = resolve(process.env['TRIWIRE_SERVERS_DIR'] ?? join(root, '.servers'))
mkdirSync(cache, { recursive: true })
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
const isWanted = (name: string) => positionals.length === 0 || positionals.includes(name)

const results: Results[] = []
const llamaCpp = await obtain('llama.cpp', () => prepareLlamaCpp(cache, values.mirror))
if (llamaCpp) {
  await llamaCpp.start()
  if (isWanted(llamaCpp.name)) results.push(await trial(llamaCpp))
  const liteLlm = isWanted('LiteLLM') && (await obtain('LiteLLM', () => prepareLiteLlm(cache, llamaCpp)))
  if (liteLlm) {
    await liteLlm.start()
    results.push(await trial(liteLlm))
    await liteLlm.stop()
  }
  await llamaCpp.stop()
  if (results.length > 0) writeFileSync(page, writePage(readFileSync(page, 'utf8'), results))
}

/** Reads the command line. An unknown option or server ends the process, with a usage. */
function readArguments() {
  const names = Object.keys(knownFaults)
  try {
    const read = parseArgs({ options: { mirror: { type: 'string' } }, allowPositionals: true })
    if (read.positionals.every((name) => names.includes(name))) return read
  } catch {
    // The usage says what is allowed.
  }
  console.error(`npm run test:servers [-- --mirror URL] [NAME…]\n\n  Names: ${names.join(', ')}`)
  process.exit(2)
}

/** Prepares a server. @returns undefined if this machine cannot get it */
async function obtain(name: string, prepare: () => Promise<ModelServer>): Promise<ModelServer | undefined> {
  try {
    return await prepare()
  } catch (error) {
    if (!(error instanceof Unobtainable)) throw error
    console.log(`SKIPPED ${name}: ${error.message}`)
    return undefined
  }
}

/** Runs the suite on a server, and prints the results. A failure sets the exit code. */
async function trial(server: ModelServer): Promise<Results> {
  console.log(`${server.name} ${server.version}`)
  const folder = mkdtempSync(join(tmpdir(), 'triwire-servers-'))
  const gateway = await startGateway(folder, server)
  const results = await runSuite(server, gateway, ({ feature, clientWire, modelWire, verdict, words }) => {
    if (verdict === 'ours') console.log(`FAILED ${feature}, ${clientWire}→${modelWire}: ${words.join('; ')}`)
  }).finally(() => gateway.stop())
  const { cells, billed, differing, findings, seconds } = results
  console.log(`\n${tableOf(results)}\n`)
  const failed = cells.filter(({ verdict }) => verdict === 'ours')
  console.log(`${billed} answers were compared with the ledger, of which ${differing.length} differ`)
  for (const difference of differing) console.log(`FAILED ${difference}`)
  if (findings.length > 0) console.log(`FAILED ledger verify: ${JSON.stringify(findings)}`)
  const isFine = failed.length === 0 && differing.length === 0 && findings.length === 0
  console.log(`${isFine ? 'the gateway has no fault' : `${failed.length} cells failed, see ${folder}`}, ${seconds} s`)
  if (!isFine) process.exitCode = 1
  return results
}
