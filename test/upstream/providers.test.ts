import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { parse } from 'yaml'
import { type WireName, wireNames } from '../../src/catalog/model.ts'
import { profileNames } from '../../src/catalog/profiles.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { atEnd } from '../support/at-end.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { asks, paths } from '../support/native.ts'

/* The table of docs/providers.md: each row is asked, with the simulator at that provider's path. */

type Row = {
  provider: string
  settings: { base_url: string; key_header?: string }
  wire: WireName
  profiles: string[]
  goesTo: string
}

const rows = readRows(readFileSync(join(import.meta.dirname, '../../docs/providers.md'), 'utf8'))

function readRows(page: string): Row[] {
  const inside = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text!)
  return page
    .split('\n')
    .map((line) => line.split(' | '))
    .filter(([, settings]) => settings?.startsWith('`base_url:'))
    .map(([provider = '', settings, wire, profiles, goesTo]) => ({
      provider: provider.slice(2),
      settings: parse(`{ ${inside(settings)[0]} }`) as Row['settings'],
      wire: wire as WireName,
      profiles: inside(profiles),
      goesTo: inside(goesTo)[0]!,
    }))
}

test('P8 N-F3 every provider of the table is asked at its own path, with its key in the header it looks into', async () => {
  const served = Object.fromEntries(rows.map(({ wire, goesTo }) => [goesTo.split('?')[0], wire]))
  const simulator = await startSimulator({ record: true, paths: served })
  atEnd(simulator.close)
  const asked = rows.flatMap((row) => row.profiles.map((profile) => ({ ...row, profile })))
  const model = ({ wire, profile }: (typeof asked)[number], index: number) =>
    testModel(`m${index}`, wire, { upstream: `u${index}`, upstream_model: 'DEPLOYMENT', profile })
  const upstream = ({ settings }: Row) => {
    const { pathname } = new URL(settings.base_url)
    const base = simulator.url + (pathname === '/' ? '' : pathname)
    return { ...settings, base_url: base, accounts: [{ name: 'a', key: 'upstream-key-1' }] }
  }
  const gateway = await startTestGateway({
    models: asked.map(model),
    upstream: () => ({ upstreams: Object.fromEntries(asked.map((row, index) => [`u${index}`, upstream(row)])) }),
  })
  for (const [index, { provider, settings, wire, profile, goesTo }] of asked.entries()) {
    const about = `${provider}, ${wire}, ${profile}`
    const response = await gateway.post(paths[wire], { ...asks[wire], model: `m${index}` })
    assert.equal(response.status, 200, `${about}: ${await response.text()}`)
    const { path, query, headers } = simulator.requests.at(-1)!
    assert.equal(path + query, goesTo, about)
    const header = settings.key_header ?? (wire === 'messages' ? 'x-api-key' : 'authorization')
    const key = header === 'authorization' ? 'Bearer upstream-key-1' : 'upstream-key-1'
    const sent = ['authorization', 'x-api-key', 'api-key'].filter((name) => headers[name] !== undefined)
    assert.deepEqual([sent, headers[header]], [[header], key], about)
  }
  assert.ok(asked.length >= 40)
})

test('P8 N-F3 the table has an address for every named profile', () => {
  const told = new Set(rows.flatMap(({ profiles }) => profiles))
  const missing = profileNames.filter((name) => !told.has(name) && !/^(default-|simulator)/.test(name))
  assert.deepEqual(missing, [])
  assert.deepEqual([...new Set(rows.map(({ wire }) => wire))].sort(), [...wireNames].sort())
})
