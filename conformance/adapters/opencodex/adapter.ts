import { join } from 'node:path'
import { type Adapter, adapterNames } from '../../src/adapter.ts'
import type { Wire } from '../../src/case.ts'
import { findNpm, homeOf, startProgram } from '../../src/program.ts'

/** The adapter that asks its model on this wire, and the path below which it finds it. */
const kinds: Record<Wire, [adapter: string, path: string]> = {
  chat: ['openai-chat', '/v1'],
  responses: ['openai-responses', '/v1'],
  messages: ['anthropic', ''],
}

const adapter: Adapter = {
  title: 'opencodex',
  homepage: 'https://github.com/lidge-jun/opencodex',
  switchedOn: [
    'One provider for each wire: openai-chat, openai-responses, anthropic. Models are named provider/model.',
    'No key is asked for on loopback.',
  ],
  features: ['models'],
  deviations: [],
  lanes: 8,
  jobs: 4,
  names: (wire, lane) => {
    const { upstream } = adapterNames(wire, lane)
    return { client: `${wire}/${upstream}`, upstream }
  },
  find: async () => findNpm('opencodex', '@bitkyc08/opencodex'),
  async start({ upstream, models, folder, signal }) {
    const modules = join(homeOf('opencodex'), 'node_modules')
    const providers = Object.fromEntries(
      Object.entries(kinds).map(([wire, [kind, path]]) => [
        wire,
        {
          adapter: kind,
          baseUrl: `${upstream.origin}${path}`,
          apiKey: upstream.key,
          liveModels: false,
          models: models.filter((model) => model.wire === wire).map((model) => model.upstream),
          allowPrivateNetwork: true,
        },
      ]),
    )
    const program = await startProgram({ folder, signal }, ({ port, write }) => {
      write('config.json', JSON.stringify({ port, defaultProvider: 'chat', providers }))
      return {
        command: [process.execPath, join(modules, '@bitkyc08/opencodex/bin/ocx.mjs'), 'start', '--port', String(port)],
        env: { OPENCODEX_HOME: folder, PATH: `${join(modules, '.bin')}:${process.env['PATH']}` },
      }
    })
    return { ...program, key: 'any' }
  },
}

export default adapter
