import { join } from 'node:path'
import type { Adapter } from '../../src/adapter.ts'
import { findPython, homeOf, startProgram } from '../../src/program.ts'

/** The form in which keys are accepted. */
const key = `fgw_${'0123456789abcdef'.repeat(2)}`

const adapter: Adapter = {
  title: 'ferrogw',
  homepage: 'https://github.com/ferro-labs/ai-gateway',
  switchedOn: [
    'A master key, with its rate limit out of reach.',
    'The providers openai and anthropic at the address of the model, chosen by the name of the model.',
  ],
  features: ['keys'],
  // The messages path and the responses path only pass on to a provider of the same wire that is OpenAI-compatible.
  pairs: ['chat>chat', 'chat>messages', 'responses>responses'],
  deviations: [],
  lanes: 1,
  // The client's name goes upstream. No name ends with a number, which would be a lane.
  names: (wire) => {
    const name = { chat: 'gpt-4o-mini', responses: 'gpt-4o', messages: 'claude-3-5-haiku-latest' }[wire]
    return { client: name, upstream: name }
  },
  find: async () => findPython('ferrogw', 'ferrogw'),
  async start({ upstream, folder, signal }) {
    const program = await startProgram({ folder, signal }, ({ port, write }) => ({
      command: [join(homeOf('ferrogw'), 'bin/ferrogw'), 'serve'],
      env: {
        HOST: '127.0.0.1',
        PORT: String(port),
        MASTER_KEY: key,
        // JSON is YAML.
        GATEWAY_CONFIG: write(
          'gateway.yaml',
          JSON.stringify({
            strategy: {
              mode: 'conditional',
              conditions: [
                { key: 'model', value: 'gpt-4o-mini', target_key: 'openai' },
                { key: 'model_prefix', value: 'claude', target_key: 'anthropic' },
              ],
            },
            targets: [{ virtual_key: 'openai' }, { virtual_key: 'anthropic' }],
          }),
        ),
        OPENAI_API_KEY: upstream.key,
        OPENAI_BASE_URL: upstream.origin,
        ANTHROPIC_API_KEY: upstream.key,
        ANTHROPIC_BASE_URL: upstream.origin,
        RATE_LIMIT_RPS: '1000000',
        RATE_LIMIT_BURST: '1000000',
        LOG_LEVEL: 'warn',
      },
    }))
    return { ...program, key }
  },
}

export default adapter
