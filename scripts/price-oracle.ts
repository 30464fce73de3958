import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { builtInPresets } from '../src/catalog/presets.ts'
import { setAt } from '../src/catalog/price-list.ts'
import { loadText } from '../src/config/load.ts'

// node bin/node.mjs scripts/price-oracle.ts [instants]
//
// Compares presets that have bands with PyPI's model-prices, which shares no code with triwire. It tries random minutes
// from the beginning of the current rule to the end of its calendar of holidays. Needs Python with pip.

const instants = Number(process.argv[2] ?? 10_000)
const version = 'model-prices==0.0.5'
const folder = mkdtempSync(join(tmpdir(), 'triwire-oracle-'))

try {
  const { calendars, presets } = builtInPresets
  const { status } = spawnSync('pip', ['install', '--quiet', '--no-deps', '--target', folder, version], {
    stdio: 'inherit',
  })
  assert.equal(status, 0, 'pip has installed the oracle')
  const until = Date.parse(`${calendars['cn']!.through}T00:00:00+08:00`)
  const [start, end] = [Math.floor(Date.parse('2026-09-20T00:00:00Z') / 60_000), Math.floor(until / 60_000)]
  for (const { upstream, wire, models } of Object.values(presets))
    for (const { id, prices } of models) {
      if (!prices || !JSON.stringify(prices).includes('"bands"')) continue
      const model = { id, wire, upstream: 'up', max_output_tokens: 1, prices: prices.texts }
      const up = { base_url: upstream.baseUrl, accounts: [{ name: 'a', key: 'k' }] }
      const file = JSON.stringify({ calendars, catalog: { pinned: '2026-11-01', models: [model] }, upstreams: { up } })
      const list = loadText(file, 'presets', {}, {}).catalog.entries[0]!.prices
      const moments = Array.from(
        { length: instants },
        () => (start + Math.floor(Math.random() * (end - start))) * 60_000,
      )
      const told = ask(id, moments)
      for (const [index, at] of moments.entries()) {
        const { inputNanos, outputNanos } = setAt(list, { at }).prices
        const ours = [Number(inputNanos) / 1e9, Number(outputNanos) / 1e9]
        assert.deepEqual(ours, told[index], `${id} at ${new Date(at).toISOString()}`)
      }
      console.log(`${id}: ${instants} instants agree`)
    }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Returns the oracle's input and output prices of a model at each moment. */
function ask(id: string, moments: readonly number[]): [input: number, output: number][] {
  const program = `
import json, sys
from datetime import datetime, timezone
import model_prices
def at(ms): return datetime.fromtimestamp(ms / 1000, timezone.utc)
rates = [model_prices.rates(${JSON.stringify(id)}, at=at(ms)) for ms in json.load(sys.stdin)]
print(json.dumps([[rate.input, rate.output] for rate in rates]))`
  const options = { input: JSON.stringify(moments), env: { ...process.env, PYTHONPATH: folder }, maxBuffer: 2 ** 26 }
  const { stdout, stderr, status } = spawnSync('python3', ['-c', program], options)
  assert.equal(status, 0, stderr.toString())
  return JSON.parse(stdout.toString())
}
