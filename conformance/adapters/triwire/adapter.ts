import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Adapter } from '../../src/adapter.ts'
import type { Wire } from '../../src/case.ts'
import { freePort, startProgram } from '../../src/program.ts'
import { deviations } from './deviations.ts'

/** TRIWIRE names the program of another installation; without it, it is the one of this checkout. */
const program = process.env['TRIWIRE'] ?? join(import.meta.dirname, '../../../bin/triwire.mjs')

const adapter: Adapter = {
  title: 'triwire',
  switchedOn: [
    'Three upstream wires, one upstream with one key for each model.',
    'Prices of prices.json. One account with one key and 1,000 credits, at one credit for a dollar.',
    'Profiles: anthropic on Messages; openai on the other two, with levels of reasoning.',
    'A limit of 100,000 requests a minute, as a run has more than the 300 of the default.',
    'Everything else is as without a configuration.',
  ],
  features: ['prices', 'count-tokens', 'models', 'keys'],
  deviations,
  lanes: 120,
  jobs: 4,
  async find() {
    if (!existsSync(program))
      return { missing: `${program} is not there: outside a checkout of triwire, set TRIWIRE to its bin/triwire.mjs` }
    const { stdout, stderr } = spawnSync(process.execPath, [program, '--version'], { encoding: 'utf8' })
    return stdout ? { version: stdout.trim() } : { missing: stderr.trim() }
  },
  async start({ upstream, models, prices, folder, signal }) {
    const adminPort = await freePort()
    const admin = `http://127.0.0.1:${adminPort}`
    let [key, token] = ['', '']
    const running = await startProgram({ folder, signal }, ({ port, write }) => {
      // JSON is YAML.
      const config = write(
        'triwire.yaml',
        JSON.stringify({
          listen: `127.0.0.1:${port}`,
          admin_listen: `127.0.0.1:${adminPort}`,
          store: './triwire.db',
          limits: { requests_per_minute: 100_000 },
          catalog: {
            pinned: '2026-11-01',
            models: models.map(({ wire, client, upstream: name }) => ({
              id: client,
              wire,
              upstream: name,
              upstream_model: name,
              max_output_tokens: 32_000,
              profile: profiles[wire],
              prices: {
                input: String(prices.input),
                cache_read: String(prices.cached),
                cache_write: String(prices.cacheWrite),
                output: String(prices.output),
              },
            })),
          },
          upstreams: Object.fromEntries(
            models.map(({ upstream: name }) => [
              name,
              { base_url: upstream.origin, accounts: [{ name: 'main', key: upstream.key }] },
            ]),
          ),
        }),
      )
      const ask = (...words: string[]) => {
        const all = [program, ...words, '--config', config, '--json']
        const { status, stdout, stderr } = spawnSync(process.execPath, all, { encoding: 'utf8', cwd: folder })
        if (status !== 0) throw new Error(stderr || stdout)
        return JSON.parse(stdout) as { [name: string]: string }
      }
      ask('account', 'create', 'bothsides', '--credit', String(credit))
      key = ask('key', 'create', 'bothsides')['key']!
      token = ask('operator', 'create', 'bothsides', '--role', 'viewer')['token']!
      return {
        command: [process.execPath, program, 'serve', '--config', config],
        isReady: () => isThere(`${admin}/readyz`),
      }
    })
    return {
      ...running,
      key,
      async readSpent() {
        const response = await fetch(`${admin}/api/v1/accounts/bothsides`, {
          headers: { authorization: `Bearer ${token}` },
        })
        const { balance } = (await response.json()) as { balance: string }
        return credit - Number(balance)
      },
    }
  },
}

export default adapter

const credit = 1_000

/** Models that reason on demand: on the other wires than Messages, by levels. */
const byLevels = {
  extends: 'openai',
  reasoning: { style: 'effort', levels: ['low', 'medium', 'high'], can_disable: true },
}
const profiles: Record<Wire, unknown> = { chat: byLevels, responses: byLevels, messages: 'anthropic' }

async function isThere(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )
}
