import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Books } from '../../src/accounts/books.ts'
import { parseCredits } from '../../src/accounts/credit.ts'
import { startGateway } from '../../src/process/start.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { openBooks } from '../../src/store/open-books.ts'

/** A running gateway with the simulator, and an operator of each role. */
export type Rig = {
  url: string
  adminUrl: string
  storePath: string
  books: Books
  admin: string
  viewer: string
  finance: string
  /** Creates an account with a key, like `triwire account create` and `key create`. */
  makeAccount(name: string, credit?: string): Promise<{ id: string; key: string }>
  /** Sends a request to a model, as a client does. @returns the status */
  ask(key: string, model: string): Promise<number>
  close(): Promise<void>
}

const prices = { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' }
const dear = { input: '300', cache_read: '30', cache_write: '375', output: '15000' }

export const models = [
  { id: 'reasoner', wire: 'messages', prices },
  { id: 'writer-mini', wire: 'chat', prices },
  { id: 'coder', wire: 'responses', prices },
  { id: 'dear', wire: 'chat', prices: dear },
] as const

export type RigOptions = {
  /** `api_url` of the configuration. */
  apiUrl?: string
  ownPages?: boolean
  /** `credits.name` of the configuration. */
  creditName?: string
  /** The setting of that name. */
  signIn?: Record<string, unknown>
  models?: readonly Record<string, unknown>[]
  upstream?: string
  /** The address of models that replace the simulator. */
  upstreamUrl?: string
  webhooks?: readonly Record<string, unknown>[]
  prepare?(storePath: string): Promise<void> | void
}

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const {
    models: more = [],
    upstream = 'sim',
    upstreamUrl,
    webhooks = [],
    prepare,
    apiUrl,
    ownPages = false,
    creditName = 'credits',
    signIn,
  } = options
  const folder = mkdtempSync(join(tmpdir(), 'rig-'))
  const storePath = join(folder, 'triwire.db')
  const simulator = await startSimulator()
  if (prepare) {
    // The first part to open a store creates it.
    await (await openBooks({ engine: 'sqlite', path: storePath, shown: storePath })).close()
    await prepare(storePath)
  }
  const gateway = await startGateway({
    store: storePath,
    config: {
      ...(apiUrl !== undefined && { api_url: apiUrl }),
      own_pages: ownPages,
      credits: { name: creditName },
      ...(signIn && { sign_in: signIn }),
      catalog: {
        pinned: '2026-11-01',
        owner: 'triwire',
        models: [...models, ...more].map((model) => ({
          upstream,
          upstream_model: `up-${model['wire']}`,
          max_output_tokens: 8192,
          ...model,
        })),
      },
      reporting: { time_zone: 'Europe/Berlin' },
      webhooks,
      upstreams: {
        [upstream]: {
          base_url: upstreamUrl ?? simulator.url,
          accounts: [
            { name: 'main', key: 'k1' },
            { name: 'spare', key: 'k2' },
          ],
        },
      },
    },
  })
  const opened = await openBooks({ engine: 'sqlite', path: storePath, shown: storePath })
  const books = opened.books.as({ actor: 'cli:trial@here' })
  const tomorrowMs = Date.now() + 86_400_000
  const { token: admin } = await books.createOperator('ann', 'admin', tomorrowMs)
  const { token: viewer } = await books.createOperator('vic', 'viewer', tomorrowMs)
  const { token: finance } = await books.createOperator('fin', 'finance', tomorrowMs)
  return {
    url: gateway.url,
    adminUrl: gateway.adminUrl,
    storePath,
    books,
    admin: admin!,
    viewer: viewer!,
    finance: finance!,
    async makeAccount(name, credit = '10') {
      const { id } = await books.createAccount(name, parseCredits(credit))
      return { id, key: (await books.createKey(id, { label: 'laptop' })).key! }
    },
    async ask(key, model) {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, max_tokens: 200, messages: [{ role: 'user', content: 'Hello!' }] }),
      })
      await response.text()
      return response.status
    },
    async close() {
      await opened.close()
      await gateway.close()
      await simulator.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
