import { join } from 'node:path'
import type { Adapter } from '../../src/adapter.ts'
import type { Wire } from '../../src/case.ts'
import { findPython, homeOf, startProgram } from '../../src/program.ts'

/** The kind of provider that asks its model on this wire. */
const kinds: Record<Wire, string> = { chat: 'openai_compatible', responses: 'openai', messages: 'anthropic' }

const adapter: Adapter = {
  title: 'rolter',
  homepage: 'https://github.com/rolter-ai/rolter',
  switchedOn: [
    'The gateway alone, without control plane and database: a key of its development mode.',
    'One provider for each wire: openai_compatible, openai, anthropic. One route for each model.',
  ],
  features: ['models', 'keys'],
  // A model of kind openai gets its own requests of the responses wire unchanged, and no translated ones.
  pairs: [
    'chat>chat',
    'chat>messages',
    'messages>chat',
    'messages>messages',
    'responses>chat',
    'responses>messages',
    'responses>responses',
  ],
  deviations: [],
  lanes: 8,
  jobs: 4,
  find: async () => findPython('rolter', 'rolter'),
  async start({ upstream, models, folder, signal }) {
    const program = await startProgram({ folder, signal }, ({ port, write }) => ({
      command: [
        join(homeOf('rolter'), 'bin/rolter'),
        'gateway',
        '-c',
        write(
          'rolter.toml',
          [
            section('[server]', { host: '127.0.0.1', port }),
            ...Object.entries(kinds).map(([name, kind]) =>
              section('[[providers]]', { name, kind, api_base: upstream.origin, api_key: upstream.key }),
            ),
            ...models.flatMap(({ wire, client, upstream: model }) => [
              section('[[routes]]', { model: client, strategy: 'round_robin' }),
              section('[[routes.targets]]', { provider: wire, model }),
            ]),
          ].join('\n'),
        ),
      ],
      env: { RUST_LOG: 'warn' },
    }))
    return { ...program, key: 'sk-rolter-dev' }
  },
}

export default adapter

function section(head: string, entries: Record<string, string | number>): string {
  return `${[head, ...Object.entries(entries).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)].join('\n')}\n`
}
