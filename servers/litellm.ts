import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { installPinned } from '../clients/installs.ts'
import { freePort } from '../test/support/listen.ts'
import { Unobtainable } from './debian.ts'
import { type ModelServer, programOf } from './model-server.ts'

const pins = join(import.meta.dirname, 'litellm.txt')

/**
 * Prepares LiteLLM's proxy from PyPI, as operators run it in front of their own model server: with a master key,
 * without a database, and with the provider for servers of the chat wire. The proxy answers on all three wires.
 * @throws Unobtainable
 */
export async function prepareLiteLlm(folder: string, behind: ModelServer): Promise<ModelServer> {
  const environment = join(folder, 'litellm')
  try {
    installPinned(pins, environment, join(folder, 'pip-cache'))
  } catch (error) {
    throw new Unobtainable((error as Error).message)
  }
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const key = 'sk-the-right-key'
  const configPath = join(folder, 'litellm.yaml')
  const litellm_params = {
    model: 'hosted_vllm/tiny',
    api_base: `${behind.url}/v1`,
    api_key: behind.key,
    // Without this, LiteLLM passes on requests of the responses wire unchanged, and its translation is not tried.
    use_chat_completions_api: true,
  }
  const configuration = {
    model_list: [{ model_name: 'tiny', litellm_params }],
    general_settings: { master_key: key },
  }
  writeFileSync(configPath, stringify(configuration))
  return {
    name: 'LiteLLM',
    version: /^litellm==(\S+)/m.exec(readFileSync(pins, 'utf8'))![1]!,
    about: `LiteLLM's proxy is from PyPI. The proxy has a master key and no database. Its model runs on the ${behind.name} that is described above. The proxy
sends every request on the chat wire (\`hosted_vllm/…\` with \`use_chat_completions_api\`). So answers on messages and responses are LiteLLM's translations.`,
    url,
    key,
    // The server behind LiteLLM ignores a tool choice that names a tool.
    profile: { extends: 'litellm', tool_choice: ['auto', 'none', 'required'] },
    behind,
    ...programOf({
      command: [join(environment, 'bin/litellm'), '--config', configPath, '--host', '127.0.0.1', '--port', `${port}`],
      // Without this, LiteLLM fetches its price table from a web site.
      env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
      logPath: join(folder, 'litellm.log'),
      healthUrl: `${url}/health/liveliness`,
      startMs: 120_000,
    }),
  }
}
