import { join } from 'node:path'
import type { Adapter } from '../../src/adapter.ts'
import type { Wire } from '../../src/case.ts'
import { findBuilt, homeOf, startProgram } from '../../src/program.ts'

const key = 'sk-bothsides-0123456789abcdef'

const adapter: Adapter = {
  title: 'CLIProxyAPI',
  homepage: 'https://github.com/router-for-me/CLIProxyAPI',
  switchedOn: [
    'A key. Chat models by openai-compatibility, Messages models by claude-api-key, Responses models by codex-api-key.',
    'No retries and no cooling of keys; no statistics and no log file.',
  ],
  features: ['models', 'keys'],
  deviations: [],
  lanes: 8,
  jobs: 4,
  find: async () => findBuilt('cliproxyapi'),
  async start({ upstream, models, folder, signal }) {
    const named = (wire: Wire) =>
      models.filter((model) => model.wire === wire).map(({ client, upstream: name }) => ({ name, alias: client }))
    const program = await startProgram({ folder, signal }, ({ port, write }) => ({
      command: [
        join(homeOf('cliproxyapi'), 'program'),
        '-config',
        write(
          'config.yaml',
          // JSON is YAML.
          JSON.stringify({
            host: '127.0.0.1',
            port,
            'auth-dir': join(folder, 'auth'),
            'api-keys': [key],
            'logging-to-file': false,
            'usage-statistics-enabled': false,
            'request-retry': 0,
            'disable-cooling': true,
            'remote-management': { 'allow-remote': false, 'secret-key': '', 'disable-control-panel': true },
            'openai-compatibility': [
              {
                name: 'bothsides',
                'base-url': `${upstream.origin}/v1`,
                'api-key-entries': [{ 'api-key': upstream.key }],
                models: named('chat'),
              },
            ],
            'claude-api-key': [{ 'api-key': upstream.key, 'base-url': upstream.origin, models: named('messages') }],
            'codex-api-key': [
              { 'api-key': upstream.key, 'base-url': `${upstream.origin}/v1`, models: named('responses') },
            ],
          }),
        ),
      ],
    }))
    return { ...program, key }
  },
}

export default adapter
