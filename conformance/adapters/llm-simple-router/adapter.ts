import { join } from 'node:path'
import type { Adapter } from '../../src/adapter.ts'
import type { Wire } from '../../src/case.ts'
import { findNpm, homeOf, nodeOf, nodePackage, startProgram } from '../../src/program.ts'

/** The kind of endpoint that speaks this wire. */
const kinds: Record<Wire, string> = { chat: 'openai', responses: 'openai-responses', messages: 'anthropic' }

const adapter: Adapter = {
  title: 'llm-simple-router',
  homepage: 'https://github.com/zhushanwen321/llm-simple-router',
  switchedOn: [
    'A key. One provider for each wire, one mapping for each model, a row of its log for each request.',
    'Node 20, as a package that it compiles does not support Node 26.',
  ],
  features: ['models', 'keys'],
  deviations: [],
  lanes: 8,
  jobs: 4,
  find: async () => findNpm('llm-simple-router', 'llm-simple-router', { [nodePackage]: '20.20.2' }),
  async start({ upstream, models, folder, signal }) {
    const cli = join(homeOf('llm-simple-router'), 'node_modules/llm-simple-router/dist/cli.js')
    const program = await startProgram({ folder, signal }, ({ port }) => ({
      command: [nodeOf('llm-simple-router'), cli],
      env: { HOST: '127.0.0.1', PORT: String(port), DB_PATH: join(folder, 'router.sqlite'), LOG_LEVEL: 'error' },
    }))
    try {
      return { ...program, key: await setUp(program.origin, { upstream, models }) }
    } catch (error) {
      await program.stop()
      throw error
    }
  },
}

export default adapter

/** Does as the first administrator would. @returns a key */
async function setUp(
  origin: string,
  { upstream, models }: Pick<Parameters<Adapter['start']>[0], 'upstream' | 'models'>,
): Promise<string> {
  let cookie = ''
  const post = async (what: string, body: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`${origin}/admin/api/${what}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${what}: ${response.status} ${text}`)
    cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie
    return (JSON.parse(text) as { data?: Record<string, unknown> }).data ?? {}
  }
  await post('setup/initialize', { password: 'bothsides-0123456789-X!' })
  for (const [wire, kind] of Object.entries(kinds)) {
    const own = models.filter((model) => model.wire === wire)
    const provider = await post('providers', {
      name: wire,
      api_key: upstream.key,
      is_active: 1,
      endpoints: [{ api_type: kind, base_url: upstream.origin, api_key: upstream.key }],
      models: own.map(({ upstream: name }) => ({ name, capabilities: ['text', 'image'] })),
    })
    for (const { client, upstream: name } of own) {
      const rule = JSON.stringify({ targets: [{ backend_model: name, provider_id: provider['id'] }] })
      await post('mapping-groups', { client_model: client, rule })
    }
  }
  return String((await post('router-keys', { name: 'bothsides' }))['key'])
}
