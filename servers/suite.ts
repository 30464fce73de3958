import type { ClientWire } from '../src/catalog/wire-names.ts'
import { serverFaults } from './faults.ts'
import { type Feature, features } from './features.ts'
import { type Gateway, silences, wires } from './gateway.ts'
import { knownFaults } from './known.ts'
import type { ModelServer } from './model-server.ts'
import type { Cell, Results } from './results.ts'
import { openTrial, type Side, throughGateway, tryFeature, wordsOf } from './trial.ts'

/**
 * Tries all features on all pairs, then the faults. At the end, compares the ledger with the usage that clients
 * received.
 */
export async function runSuite(server: ModelServer, gateway: Gateway, tell: (cell: Cell) => void): Promise<Results> {
  const startedMs = performance.now()
  const side = throughGateway(gateway.url, gateway.key)
  const direct: Side = { url: server.url, key: server.key, modelOf: () => 'tiny' }
  const cells: Cell[] = []
  const add = (cell: Cell) => {
    cells.push(cell)
    tell(cell)
  }
  for (const feature of features) {
    for (const modelWire of wires) {
      if (!feature.isOurs) add(await runCell(feature, direct, 'direct', modelWire, server))
      for (const clientWire of wires) add(await runCell(feature, side, clientWire, modelWire, server))
    }
  }
  await gateway.setSilence(silences.short)
  for (const fault of serverFaults.filter(({ isOn }) => isOn?.(server) ?? true)) {
    for (const modelWire of wires) {
      for (const clientWire of wires) {
        const words: string[] = []
        await fault.run({ server, side, clientWire, modelWire }).catch((error: unknown) => words.push(wordsOf(error)))
        add(cellOf(fault.name, clientWire, modelWire, words, server))
      }
    }
  }
  const { billed, differing } = compare(side, gateway)
  return {
    server: server.name,
    version: server.version,
    about: server.about,
    cells,
    billed,
    differing,
    findings: gateway.findings(),
    seconds: Math.round((performance.now() - startedMs) / 1000),
  }
}

async function runCell(
  feature: Feature,
  side: Side,
  clientWire: ClientWire | 'direct',
  modelWire: ClientWire,
  server: ModelServer,
): Promise<Cell> {
  const words: string[] = []
  for (const isStreamed of feature.isWholeOnly ? [false] : [false, true]) {
    const what = `${feature.name}, ${clientWire}→${modelWire}, ${isStreamed ? 'stream' : 'JSON'}`
    const trial = openTrial(side, clientWire === 'direct' ? modelWire : clientWire, modelWire, isStreamed, what)
    if (feature.isOn?.(trial.client) === false)
      return { feature: feature.name, clientWire, modelWire, verdict: 'none', words }
    const failed = await tryFeature(feature, trial)
    if (failed !== undefined) words.push(`${isStreamed ? 'stream' : 'JSON'}: ${failed}`)
  }
  return cellOf(feature.name, clientWire, modelWire, words, server)
}

function cellOf(
  feature: string,
  clientWire: ClientWire | 'direct',
  modelWire: ClientWire,
  words: string[],
  { name }: ModelServer,
): Cell {
  const isKnown = (knownFaults[name] ?? []).some(
    (known) =>
      !known.isMended &&
      known.modelWires.includes(modelWire) &&
      known.features.includes(feature) &&
      (!known.isNativeOnly || clientWire === modelWire),
  )
  const failed = clientWire === 'direct' || isKnown ? 'own' : 'ours'
  return { feature, clientWire, modelWire, verdict: words.length === 0 ? 'pass' : failed, words }
}

/**
 * Compares the ledger with what clients received. A complete answer must have a debit with the usage that its client
 * received. An answer that was cut must have a debit for the part that was shown. A refusal must have none.
 */
function compare({ bills, cut, refused }: Required<Side>, gateway: Gateway): Pick<Results, 'billed' | 'differing'> {
  const entries = gateway.entries()
  const whole = bills.flatMap(({ id, usage, what }) => {
    const entry = entries.get(id)
    if (entry === undefined) return [`${what}: no entry`]
    const { input_tokens, cache_read_tokens, output_tokens } = entry
    const [told, billed] = [
      [usage.input, usage.cached, usage.output],
      [input_tokens + cache_read_tokens, cache_read_tokens, output_tokens],
    ].map((figures) => figures.join('/'))
    return told === billed ? [] : [`${what}: the client received ${told}, billed ${billed}`]
  })
  const unbilled = cut.filter(({ id }) => !((entries.get(id)?.output_tokens ?? 0) > 0))
  const billedRefusals = refused.filter(({ id }) => entries.has(id))
  return {
    billed: bills.length,
    differing: [
      ...whole,
      ...unbilled.map(({ what }) => `${what}: the shown part of a cut answer is not billed`),
      ...billedRefusals.map(({ what }) => `${what}: a refusal is billed`),
    ],
  }
}
