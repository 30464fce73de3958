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
// Real model servers, with a model that is written here, behind the real gateway, asked by the official SDKs: nine pairs of
// wires times every feature, and what may befall a server. Prints a table of each, and writes docs/servers.md. What cannot be
// downloaded is told as SKIPPED, and fails nothing; its part of the page stays as it is. So do those of servers not named.

const { values, positionals } = parseArgs({ options: { mirror: { type: 'string' } }, allowPositionals: true })
const root = join(import.meta.dirname, '..')
const page = join(root, 'docs/servers.md')
const cache = resolve(process.env['TRIWIRE_SERVERS_DIR'] ?? join(root, '.servers'))
mkdirSync(cache, { recursive: true })
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
const unknown = positionals.filter((name) => !Object.hasOwn(knownFaults, name))
if (unknown.length > 0)
  throw new Error(`no server is called ${unknown}; there are ${Object.keys(knownFaults).join(', ')}`)
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

/** @returns undefined where it is not to be had here. */
async function obtain(name: string, prepare: () => Promise<ModelServer>): Promise<ModelServer | undefined> {
  try {
    return await prepare()
  } catch (error) {
    if (!(error instanceof Unobtainable)) throw error
    console.log(`SKIPPED ${name}: ${error.message}`)
    return undefined
  }
}

/** Tells how it came out, and remembers a failure for the end. */
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
  console.log(`${billed} answers, of which the ledger has other figures for ${differing.length}`)
  for (const difference of differing) console.log(`FAILED ${difference}`)
  if (findings.length > 0) console.log(`FAILED ledger verify: ${JSON.stringify(findings)}`)
  const isFine = failed.length === 0 && differing.length === 0 && findings.length === 0
  console.log(`${isFine ? 'all ours pass' : `${failed.length} cells failed, see ${folder}`}, ${seconds} s`)
  if (!isFine) process.exitCode = 1
  return results
}
