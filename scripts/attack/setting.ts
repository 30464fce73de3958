import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { stringify } from 'yaml'
import { createBooks } from '../../src/accounts/books.ts'
import { parseCredits } from '../../src/accounts/credit.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { openStore } from '../../src/store/sqlite/store.ts'

/** The number of payers. It keeps each below the 300 requests a minute of an account (spec 8). */
const payers = 12
const attackers = 120
const paupers = 4

/** The low priority of attackers. Real attackers use other machines and take no processor time from the server. */
export const attackersNice = 5

/** Files, keys and upstreams of one trial. */
export type Setting = {
  folder: string
  configPath: string
  storePath: string
  logPath: string
  /** The keys of accounts by role. Paupers have a balance of zero. */
  keys: { payers: string[]; attackers: string[]; paupers: string[] }
  /** The address of the payers' upstream. */
  honestUrl: string
  /** Writes the configuration, with or without an upstream that comes and goes. */
  writeConfig(hasPassing: boolean): void
  close(): Promise<void>
}

export async function createSetting(): Promise<Setting> {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-attack-'))
  const configPath = join(folder, 'triwire.yaml')
  const storePath = join(folder, 'triwire.db')
  const upstreams = [await startUpstream(0), await startUpstream(attackersNice)] as const
  const [honestUrl, hostileUrl] = [upstreams[0].url, upstreams[1].url]
  const setting: Setting = {
    folder,
    configPath,
    storePath,
    logPath: join(folder, 'log'),
    keys: await createKeys(storePath),
    honestUrl,
    writeConfig: (hasPassing) =>
      writeFileSync(configPath, stringify(configuration(honestUrl, hostileUrl, hasPassing)), { mode: 0o600 }),
    close: async () => {
      for (const { worker } of upstreams) await worker.terminate()
    },
  }
  setting.writeConfig(true)
  return setting
}

async function createKeys(storePath: string): Promise<Setting['keys']> {
  const store = openStore(storePath)
  const books = createBooks(store, Date.now)
  const create = async (name: string, count: number, credit: bigint) => {
    const keys: string[] = []
    for (let i = 0; i < count; i++) {
      await books.createAccount(`${name}-${i}`, credit)
      keys.push((await books.createKey(`${name}-${i}`)).key)
    }
    return keys
  }
  const rich = parseCredits('1000000')
  const keys = {
    payers: await create('payer', payers, rich),
    attackers: await create('attacker', attackers, rich),
    paupers: await create('pauper', paupers, 0n),
  }
  store.close()
  return keys
}

async function startUpstream(nice: number): Promise<{ worker: Worker; url: string }> {
  const worker = new Worker(new URL('./upstream.ts', import.meta.url), { workerData: { nice } })
  const port = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  return { worker, url: `http://127.0.0.1:${port}` }
}

/** The behaviours of models that only attackers use. The models are named `<behaviour>-<wire>`. */
const hostile = [
  'refuse',
  'error-body',
  'error-event',
  'hang',
  'stall',
  'tail',
  'endless',
  'silent',
  'long',
  'lie',
  'cut',
  'logprobs',
  'garbage',
]

/** All other settings have their defaults: rates, sizes, and time limits of clients. */
function configuration(honestUrl: string, hostileUrl: string, hasPassing: boolean): unknown {
  const upstream = (url: string) => ({ base_url: url, accounts: [{ name: 'a', key: 'upstream-secret-of-this-trial' }] })
  return {
    listen: '127.0.0.1:0',
    admin_listen: '127.0.0.1:0',
    store: './triwire.db',
    limits: { connections_max: 1_500 },
    timeouts: { drain_delay: '0s', drain_deadline: '5s' },
    upstreams: {
      honest: upstream(honestUrl),
      hostile: upstream(hostileUrl),
      ...(hasPassing ? { passing: upstream(hostileUrl) } : {}),
    },
    catalog: {
      pinned: '2026-11-01',
      models: clientWireNames.flatMap((wire) => [
        model('payer', wire, 'honest', 'echo'),
        // Models with which attackers use the payers' own upstream account.
        model('trouble', wire, 'honest', 'trouble'),
        model('full', wire, 'honest', 'full'),
        ...hostile.map((behaviour) => model(behaviour, wire, 'hostile', behaviour)),
        ...(hasPassing ? [model('passing', wire, 'passing', 'stall')] : []),
      ]),
    },
  }
}

function model(name: string, wire: ClientWire, upstream: string, behaviour: string): Record<string, unknown> {
  return {
    id: `${name}-${wire}`,
    wire,
    upstream,
    upstream_model: behaviour,
    max_output_tokens: 8192,
    prices: { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' },
    remote_media: 'refuse',
    ...(wire === 'responses' ? { profile: 'openai-reasoning' } : {}),
  }
}
