import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Adapter } from '../../src/adapter.ts'
import type { Wire } from '../../src/case.ts'
import { findPython, homeOf, startProgram } from '../../src/program.ts'

const key = 'sk-bothsides-0123456789abcdef'

/** The provider that asks its model on this wire. hosted_vllm is the one for servers that have Chat Completions only. */
const providers: Record<Wire, [prefix: string, path: string]> = {
  chat: ['hosted_vllm/', '/v1'],
  responses: ['openai/responses/', '/v1'],
  messages: ['anthropic/', ''],
}

/** A logger of the documented form, which writes the cost of each request: the proxy itself needs a database for sums. */
const logger = `from litellm.integrations.custom_logger import CustomLogger

class Spent(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        with open("spent", "a") as file:
            file.write(f"{kwargs.get('response_cost') or 0}\\n")

spent = Spent()
`

const adapter: Adapter = {
  title: 'LiteLLM proxy',
  homepage: 'https://docs.litellm.ai/docs/simple_proxy',
  switchedOn: [
    'A master key, one worker, no database.',
    'Chat models by hosted_vllm with use_chat_completions_api, Responses models by openai/responses, Messages models by anthropic.',
    'drop_params; no retries and no cooldowns.',
    'Prices of prices.json in model_info, and a logger that adds up what each request cost.',
  ],
  // Without a database it knows the master key alone, and refuses others as a fault of its own.
  features: ['prices', 'models'],
  deviations: [],
  lanes: 8,
  jobs: 4,
  find: async () => findPython('litellm', 'litellm'),
  async start({ upstream, models, prices, folder, signal }) {
    const cost = {
      input_cost_per_token: prices.input / 1e6,
      cache_read_input_token_cost: prices.cached / 1e6,
      cache_creation_input_token_cost: prices.cacheWrite / 1e6,
      output_cost_per_token: prices.output / 1e6,
    }
    const program = await startProgram({ folder, signal }, ({ port, write }) => {
      write('bothsides_spent.py', logger)
      const config = {
        model_list: models.map(({ wire, client, upstream: name }) => ({
          model_name: client,
          litellm_params: {
            model: `${providers[wire][0]}${name}`,
            api_base: `${upstream.origin}${providers[wire][1]}`,
            api_key: upstream.key,
            ...(wire === 'chat' ? { use_chat_completions_api: true } : {}),
            ...cost,
          },
          model_info: { ...cost, supports_reasoning: true },
        })),
        general_settings: { master_key: key, disable_spend_logs: true },
        litellm_settings: {
          request_timeout: 60,
          num_retries: 0,
          drop_params: true,
          callbacks: ['bothsides_spent.spent'],
        },
        router_settings: { disable_cooldowns: true, num_retries: 0 },
      }
      const where = ['--host', '127.0.0.1', '--port', String(port), '--num_workers', '1', '--telemetry', 'False']
      return {
        // JSON is YAML.
        command: [
          join(homeOf('litellm'), 'bin/litellm'),
          '--config',
          write('litellm.yaml', JSON.stringify(config)),
          ...where,
        ],
        env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR' },
      }
    })
    return {
      ...program,
      key,
      async readSpent() {
        const file = join(folder, 'spent')
        const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
        return lines.reduce((sum, line) => sum + Number(line), 0)
      },
    }
  },
}

export default adapter
