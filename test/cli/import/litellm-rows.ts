// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the configuration look like placeholders
import assert from 'node:assert/strict'
import { resolveProfile } from '../../../src/catalog/profiles.ts'

export type Entry = Record<string, unknown>
/** @property models the ids in our catalog, in order @property left places that must be listed as not carried
 * @property isEdge it is there for what cannot be carried */
export type LitellmRow = {
  isEdge?: true
  name: string
  file: string
  models: string[]
  left?: string[]
  check?: (config: Entry) => void
}

export const priced = 'input_cost_per_token: 0.000003, output_cost_per_token: 0.000015'
export const env = (name: string) => `os.environ/${name}`
export const entry = (name: string, params: string, more = '') =>
  `- { model_name: "${name}", litellm_params: { ${params} }${more && `, ${more}`} }`
export const list = (...entries: string[]) => `model_list:\n${entries.map((one) => `  ${one}`).join('\n')}\n`
export const modelOf = (config: Entry, id: string) =>
  (config['catalog'] as { models: Entry[] }).models.find((model) => model['id'] === id)!
export const upstreamOf = (config: Entry, name: string) => (config['upstreams'] as Record<string, Entry>)[name]!

/** Shapes of configurations, after the fields and forms that docs.litellm.ai has for them (November 2026). */
export const rows: LitellmRow[] = [
  {
    name: 'one deployment, whose key is a variable',
    file: list(entry('luna', `model: openai/gpt-6-luna, api_key: ${env('OPENAI_API_KEY')}`)),
    models: ['luna'],
    check: (config) => {
      assert.equal(modelOf(config, 'luna')['wire'], 'responses')
      assert.equal(modelOf(config, 'luna')['upstream_model'], 'gpt-6-luna')
      assert.deepEqual(upstreamOf(config, 'openai')['accounts'], [{ name: 'main', key: '${OPENAI_API_KEY}' }])
    },
  },
  {
    name: 'the same deployment with two keys, which become two accounts',
    file: list(
      entry('sonnet', `model: anthropic/claude-sonnet-5-5, api_key: ${env('A')}`),
      entry('sonnet', `model: anthropic/claude-sonnet-5-5, api_key: ${env('B')}`),
    ),
    models: ['sonnet'],
    check: (config) =>
      assert.deepEqual(upstreamOf(config, 'anthropic')['accounts'], [
        { name: 'key-1', key: '${A}' },
        { name: 'key-2', key: '${B}' },
      ]),
  },
  {
    name: 'two places with rpm, which become weights, and an order',
    file: list(
      entry('m', `model: openai/a, api_base: "https://a.example/v1", api_key: k1, rpm: 60, order: 1, ${priced}`),
      entry('m', `model: openai/b, api_base: "https://b.example/v1", api_key: k2, rpm: 20, order: 2, ${priced}`),
    ),
    models: ['m'],
    check: (config) =>
      assert.deepEqual(modelOf(config, 'm')['upstream'], [
        { name: 'openai', upstream_model: 'a', weight: 3 },
        { name: 'openai-2', upstream_model: 'b', priority: 2 },
      ]),
  },
  {
    name: 'weights with decimals',
    file: list(
      entry('m', `model: openai/a, api_base: "https://a.example/v1", api_key: k1, weight: 0.9, ${priced}`),
      entry('m', `model: openai/b, api_base: "https://b.example/v1", api_key: k2, weight: "0.1", ${priced}`),
    ),
    models: ['m'],
    check: (config) =>
      assert.deepEqual(modelOf(config, 'm')['upstream'], [
        { name: 'openai', upstream_model: 'a', weight: 9 },
        { name: 'openai-2', upstream_model: 'b' },
      ]),
  },
  {
    name: 'a place without an order, which comes after those with one',
    file: list(
      entry('m', `model: openai/a, api_base: "https://a.example/v1", api_key: k1, ${priced}`),
      entry('m', `model: openai/b, api_base: "https://b.example/v1", api_key: k2, order: 5, ${priced}`),
      entry(
        'm',
        `model: openai/c, api_base: "https://c.example/v1", api_key: k3, ${priced}`,
        'model_info: { order: 0 }',
      ),
    ),
    models: ['m'],
    check: (config) =>
      assert.deepEqual(modelOf(config, 'm')['upstream'], [
        { name: 'openai', upstream_model: 'c' },
        { name: 'openai-2', upstream_model: 'b', priority: 2 },
        { name: 'openai-3', upstream_model: 'a', priority: 3 },
      ]),
  },
  {
    name: 'two wires in the order of their deployments',
    file: list(
      entry('m', `model: openrouter/x, api_key: k1, order: 2, ${priced}`),
      entry('m', `model: anthropic/x, api_key: k2, order: 1, ${priced}`),
    ),
    models: ['m-only', 'm-chat', 'm'],
    check: (config) => {
      assert.deepEqual(modelOf(config, 'm')['chain'], ['m-only', 'm-chat'])
      assert.equal(modelOf(config, 'm-only')['wire'], 'messages')
    },
  },
  {
    isEdge: true,
    name: 'a weight beside a deployment without one',
    file: list(
      entry('m', `model: openai/a, api_base: "https://a.example/v1", api_key: k1, weight: 3, ${priced}`),
      entry('m', `model: openai/b, api_base: "https://b.example/v1", api_key: k2, ${priced}`),
    ),
    models: ['m'],
    left: ['model_list[0].litellm_params.weight'],
  },
  {
    name: 'prices by the token, exact, with steps and caches',
    file: list(
      entry(
        'm',
        'model: openai/x, api_base: "https://a.example/v1", api_key: k, input_cost_per_token: 1.25e-7, output_cost_per_token: "0.0000015", cache_read_input_token_cost: 2.5e-8',
        'model_info: { input_cost_per_token_above_200k_tokens: 2.5e-7, max_output_tokens: 1000, max_input_tokens: 300000 }',
      ),
    ),
    models: ['m'],
    check: (config) => {
      const { prices, max_output_tokens: most, context_window: window } = modelOf(config, 'm')
      assert.deepEqual(prices, {
        input: '0.125',
        output: '1.5',
        cache_read: '0.025',
        steps: [{ above: 200_000, input: '0.25', output: '1.5', cache_read: '0.025' }],
      })
      assert.deepEqual([most, window], [1000, 300_000])
    },
  },
  {
    name: 'prices of 0, which an operator wrote for free tokens',
    file: list(
      entry(
        'm',
        'model: openai/x, api_base: "https://a.example/v1", api_key: k, input_cost_per_token: 1.0e-6, output_cost_per_token: 2.0e-6, cache_read_input_token_cost: 0',
        'model_info: { input_cost_per_token_above_200k_tokens: 3.0e-6 }',
      ),
      entry(
        'n',
        'model: openai/y, api_base: "https://a.example/v1", api_key: k, input_cost_per_token: 0, output_cost_per_token: 2.0e-6, cache_creation_input_token_cost: 1.0e-6',
      ),
    ),
    models: ['m', 'n'],
    check: (config) => {
      const steps = [{ above: 200_000, input: '3', output: '2', cache_read: '0' }]
      assert.deepEqual(modelOf(config, 'm')['prices'], { input: '1', output: '2', cache_read: '0', steps })
      assert.deepEqual(modelOf(config, 'n')['prices'], { input: '0', output: '2', cache_write: '1' })
    },
  },
  {
    name: 'Azure in its classic form, by Entra and by key',
    file: list(
      entry(
        'a',
        `model: azure/dep, api_base: "https://r.openai.azure.com/", api_version: "2025-01-01", api_key: ${env('AZ')}`,
        'model_info: { base_model: azure/gpt-6-luna }',
      ),
      entry(
        'b',
        `model: azure/dep2, api_base: ${env('AZ_BASE')}, tenant_id: t, client_id: c, client_secret: ${env('SEC')}, ${priced}`,
      ),
    ),
    models: ['a', 'b'],
    check: (config) => {
      assert.deepEqual(upstreamOf(config, 'azure'), {
        base_url: 'https://r.openai.azure.com',
        query: { 'api-version': '2025-01-01' },
        key_header: 'api-key',
        paths: { chat: '/openai/deployments/{model}/chat/completions' },
        accounts: [{ name: 'main', key: '${AZ}' }],
      })
      assert.equal(modelOf(config, 'a')['profile'], 'openai-reasoning')
      assert.equal((upstreamOf(config, 'azure-2')['accounts'] as [{ azure: Entry }])[0].azure['secret'], '${SEC}')
    },
  },
  {
    name: 'Azure in its newer form, and Foundry',
    file: list(
      entry(
        'a',
        `model: azure/dep, api_base: "https://r.openai.azure.com", api_version: preview, api_key: k, ${priced}`,
      ),
      entry(
        'b',
        `model: azure_ai/claude-x, api_base: "https://r.services.ai.azure.com/anthropic", api_key: k, ${priced}`,
      ),
      entry('c', `model: azure_ai/x, api_base: "https://r.services.ai.azure.com/models", api_key: k, ${priced}`),
      entry('d', `model: azure_ai/y, api_base: "https://y.eastus2.models.ai.azure.com/v1/", api_key: k, ${priced}`),
    ),
    models: ['a', 'b', 'c', 'd'],
    check: (config) => {
      assert.equal(upstreamOf(config, 'azure')['base_url'], 'https://r.openai.azure.com/openai/v1')
      assert.equal(modelOf(config, 'b')['wire'], 'messages')
      assert.equal(upstreamOf(config, 'azure_ai-2')['base_url'], 'https://r.services.ai.azure.com/openai/v1')
      const { base_url, key_header } = upstreamOf(config, 'azure_ai-3')
      assert.deepEqual([base_url, key_header], ['https://y.eastus2.models.ai.azure.com/v1', undefined])
    },
  },
  {
    name: 'Bedrock: a region, a role, a model of another family, and one for Converse only',
    isEdge: true,
    file: list(
      entry(
        'c',
        `model: bedrock/converse/eu.anthropic.claude-sonnet-5-5-v1:0, aws_region_name: eu-west-1, aws_role_name: "arn:aws:iam::123456789012:role/x", aws_session_name: llm`,
      ),
      entry('o', 'model: bedrock/us-west-2/openai.gpt-oss-20b'),
      entry('n', `model: bedrock/amazon.nova-x, ${priced}`),
    ),
    models: ['c', 'o'],
    left: ['model_list[2].model_name', 'model_list[2].litellm_params.model'],
    check: (config) => {
      assert.equal(upstreamOf(config, 'bedrock')['base_url'], 'https://bedrock-runtime.eu-west-1.amazonaws.com')
      assert.equal(modelOf(config, 'c')['profile'], 'anthropic-bedrock-always-thinking')
    },
  },
  {
    name: 'Bedrock: regions with a domain of their own, an address of its own, and addresses that cannot be carried',
    isEdge: true,
    file: list(
      entry('e', `model: bedrock/eusc-de-east-1/anthropic.claude-sonnet-5-5-v1:0, ${priced}`),
      entry('c', `model: jp.anthropic.claude-sonnet-5-5-v1:0, aws_region_name: cn-north-1, ${priced}`),
      entry(
        'p',
        `model: bedrock/anthropic.claude-sonnet-5-5-v1:0, aws_region_name: eu-west-1, api_base: "https://bedrock.example", ${priced}`,
      ),
      entry(
        'm',
        `model: bedrock/openai.gpt-oss-20b, api_base: "https://bedrock-mantle.eu-west-1.api.aws/v1", ${priced}`,
      ),
      entry(
        'o',
        `model: bedrock/openai.gpt-oss-20b, aws_bedrock_runtime_endpoint: "https://bedrock.example", ${priced}`,
      ),
      entry('v', `model: vertex_ai/gemini-3.8-flash, api_base: "https://vertex.example/gemini", ${priced}`),
    ),
    models: ['e', 'c', 'p', 'm'],
    left: ['model_list[4].model_name', 'model_list[5].litellm_params.api_base'],
    check: (config) =>
      assert.deepEqual(
        Object.values(config['upstreams'] as Record<string, Entry>).map((upstream) => upstream['base_url']),
        [
          'https://bedrock-runtime.eusc-de-east-1.amazonaws.eu',
          'https://bedrock-runtime.cn-north-1.amazonaws.com.cn',
          'https://bedrock.example',
          'https://bedrock-mantle.eu-west-1.api.aws/v1',
        ],
      ),
  },
  {
    name: 'Vertex: Gemini and Claude',
    file: list(
      entry(
        'g',
        `model: vertex_ai/gemini-3.8-flash, vertex_project: p, vertex_location: global, vertex_credentials: /sa.json`,
      ),
      entry('c', `model: vertex_ai/claude-sonnet-5-5@default, vertex_project: ${env('P')}, vertex_location: us-east5`),
      entry('e', 'model: vertex_ai/claude-sonnet-5-5, vertex_project: p, vertex_location: eu'),
    ),
    models: ['g', 'c', 'e'],
    check: (config) => {
      assert.equal(modelOf(config, 'g')['upstream_model'], 'google/gemini-3.8-flash')
      assert.equal(modelOf(config, 'c')['profile'], 'anthropic-google-always-thinking')
      assert.equal(upstreamOf(config, 'vertex_ai')['base_url'], 'https://aiplatform.googleapis.com')
      assert.match(
        JSON.stringify(upstreamOf(config, 'vertex_ai-2')),
        /projects\/\$\{P\}\/locations\/us-east5.*rawPredict/,
      )
      assert.equal(upstreamOf(config, 'vertex_ai-3')['base_url'], 'https://aiplatform.eu.rep.googleapis.com')
    },
  },
  {
    name: 'servers of its own: vLLM, Ollama, an OpenAI-compatible one, all for nothing',
    file: list(
      entry('v', 'model: hosted_vllm/meta/llama, api_base: "http://10.0.0.5:8000/v1"'),
      entry('o', 'model: ollama_chat/llama3, api_base: "http://ollama:11434"'),
      entry(
        'x',
        'model: openai/qwen, api_base: "http://localhost:1234/v1", api_key: none, input_cost_per_token: 0, output_cost_per_token: 0',
      ),
      entry('l', 'model: llamafile/x'),
    ),
    models: ['v', 'o', 'x', 'l'],
    check: (config) => {
      for (const id of ['v', 'o', 'x', 'l'])
        assert.deepEqual(modelOf(config, id)['prices'], { input: '0', output: '0' })
      assert.equal(modelOf(config, 'v')['profile'], 'vllm')
      assert.equal(upstreamOf(config, 'ollama_chat')['base_url'], 'http://ollama:11434')
    },
  },
  {
    name: 'a public host whose name begins like a private address, so that its model needs prices',
    file: list(
      entry('m', 'model: openai/qwen, api_base: "https://10.example.com/v1", api_key: k'),
      entry('n', 'model: openai/qwen, api_base: "http://172.31.0.5:8000/v1", api_key: k'),
    ),
    models: ['n'],
    left: ['model_list[0].model_name', 'model_list[0].litellm_params.model', 'model_list[0].litellm_params.api_base'],
    check: (config) => assert.deepEqual(modelOf(config, 'n')['prices'], { input: '0', output: '0' }),
  },
  {
    name: 'a bare host, whose path LiteLLM does not complete with /v1',
    file: list(entry('m', `model: openai/x, api_base: "https://h.example", api_key: k, ${priced}`)),
    models: ['m'],
    check: (config) => assert.deepEqual(upstreamOf(config, 'openai')['paths'], { chat: '/chat/completions' }),
  },
  {
    name: 'names with a star, which become the models of the preset',
    file: list(entry('ds/*', `model: deepseek/*, api_key: ${env('D')}`), entry('*', 'model: "*"')),
    models: ['ds/deepseek-flash', 'ds/deepseek-v4-pro'],
    left: ['model_list[1].model_name', 'model_list[1].litellm_params.model'],
    check: (config) => assert.ok(config['calendars']),
  },
  {
    name: 'a star beside a model of the exact name, limits beside the parameters, and providers that are not known',
    isEdge: true,
    file: list(
      entry('deepseek-flash', `model: deepseek/deepseek-flash, api_key: ${env('A')}`, 'tpm: 3, rpm: 1'),
      entry('*', `model: deepseek/*, api_key: ${env('B')}`),
      entry('s', 'model: sagemaker/x'),
      entry('t', `model: text-completion-openai/x, ${priced}`),
      entry('d', 'model: azure/, api_base: "https://r.openai.azure.com"'),
      entry('dall-e-2', `model: azure/pictures, api_base: "https://r.openai.azure.com", ${priced}`),
    ),
    models: ['deepseek-flash', 'deepseek-v4-pro'],
    left: [
      'model_list[0].rpm',
      'model_list[2].litellm_params.model',
      'model_list[3].model_name',
      'model_list[5].model_name',
    ],
    check: (config) => assert.match(JSON.stringify(upstreamOf(config, 'deepseek')), /"key":"\$\{A\}"/),
  },
  {
    name: 'a region of a provider, and a host that only looks like it',
    file: list(
      entry('eu', `model: openai/gpt-6-luna, api_base: "https://eu.api.openai.com/v1", api_key: ${env('EU')}`),
      entry('x', `model: openai/gpt-6-luna, api_base: "https://h.example/api.openai.com/v1", api_key: k, ${priced}`),
    ),
    models: ['eu', 'x'],
    check: (config) => {
      assert.equal(upstreamOf(config, 'openai')['base_url'], 'https://eu.api.openai.com/v1')
      assert.equal(upstreamOf(config, 'openai-2')['base_url'], 'https://h.example/api.openai.com/v1')
      assert.deepEqual([modelOf(config, 'eu')['wire'], modelOf(config, 'x')['wire']], ['responses', 'chat'])
    },
  },
  {
    name: 'aliases, hidden ones and one that is a model already',
    file: `${list(entry('a', 'model: deepseek/deepseek-flash'), entry('b', 'model: xai/grok-4.5'))}router_settings: { model_group_alias: { fast: a, quick: { model: a, hidden: true }, b: a } }`,
    models: ['a', 'b'],
    left: ['router_settings.model_group_alias.b'],
    check: (config) => assert.deepEqual(modelOf(config, 'a')['also'], ['fast', 'quick']),
  },
  {
    name: 'fallbacks in both sections, and one for long prompts',
    file: `${list(entry('a', 'model: deepseek/deepseek-flash'), entry('b', 'model: xai/grok-4.5'), entry('c', 'model: mistral/mistral-large-2512'))}router_settings: { fallbacks: [{ a: [b] }], model_group_alias: { z: a } }\nlitellm_settings: { context_window_fallbacks: [{ a: [c] }, { b: [{ model: c }] }] }`,
    models: ['a-only', 'b-only', 'c', 'a', 'z', 'b'],
    check: (config) => {
      const { chain, when } = modelOf(config, 'a')
      assert.deepEqual(
        [chain, when],
        [
          ['a-only', 'b-only', 'c'],
          ['capacity', 'unavailable', 'over_long'],
        ],
      )
      assert.deepEqual(modelOf(config, 'z')['chain'], chain)
      assert.deepEqual(modelOf(config, 'b')['when'], ['over_long'])
    },
  },
  {
    name: 'default fallbacks, those of a star, and names that are not there',
    isEdge: true,
    file: `${list(entry('a', 'model: deepseek/deepseek-flash'), entry('b', 'model: xai/grok-4.5'))}litellm_settings: { default_fallbacks: [b] }\nrouter_settings: { fallbacks: [{ "gone": [a] }, { a: [nowhere, b] }] }`,
    models: ['a-only', 'b', 'a'],
    left: ['router_settings.fallbacks[0].gone', 'router_settings.fallbacks[1].a'],
  },
  {
    name: 'one name on two wires, which becomes a chain',
    file: list(
      entry('s', 'model: anthropic/claude-sonnet-5-5, api_key: k'),
      entry('s', `model: openrouter/anthropic/claude-sonnet, api_key: ${env('OR')}, ${priced}`),
    ),
    models: ['s-only', 's-chat', 's'],
    check: (config) => assert.deepEqual(modelOf(config, 's')['chain'], ['s-only', 's-chat']),
  },
  {
    name: 'one name on two wires, with a fallback only for long prompts',
    file: `${list(
      entry('s', 'model: anthropic/claude-sonnet-5-5, api_key: k'),
      entry('s', `model: openrouter/anthropic/claude-sonnet, api_key: ${env('OR')}, ${priced}`),
      entry('b', 'model: xai/grok-4.5'),
    )}router_settings: { context_window_fallbacks: [{ s: [b] }] }`,
    models: ['s-only', 's-chat', 'b', 's'],
    check: (config) => {
      const { chain, when } = modelOf(config, 's')
      assert.deepEqual(chain, ['s-only', 's-chat', 'b'])
      assert.deepEqual(when, ['capacity', 'unavailable', 'over_long'])
    },
  },
  {
    name: 'a fallback to a name on two wires, which may answer on both',
    file: `${list(
      entry('s', 'model: anthropic/claude-sonnet-5-5, api_key: k'),
      entry('s', `model: openrouter/anthropic/claude-sonnet, api_key: ${env('OR')}, ${priced}`),
      entry('b', 'model: xai/grok-4.5'),
    )}router_settings: { fallbacks: [{ b: [s] }] }`,
    models: ['s-only', 's-chat', 'b-only', 's', 'b'],
    check: (config) => assert.deepEqual(modelOf(config, 'b')['chain'], ['b-only', 's-only', 's-chat']),
  },
  {
    name: 'models of OpenAI that LiteLLM asks at the responses endpoint',
    file: list(
      entry('a', `model: openai/responses/gpt-6-luna, api_key: ${env('OPENAI_API_KEY')}`),
      entry('b', `model: openai/responses/own, api_base: "https://x.example", api_key: k, ${priced}`),
    ),
    models: ['a', 'b'],
    check: (config) => {
      const facts = (id: string) => ['wire', 'upstream_model', 'profile'].map((key) => modelOf(config, id)[key])
      assert.deepEqual(facts('a'), ['responses', 'gpt-6-luna', 'openai-reasoning'])
      assert.deepEqual(facts('b'), ['responses', 'own', 'default-responses'])
      assert.deepEqual(upstreamOf(config, 'openai-2')['paths'], { responses: '/responses' })
    },
  },
  {
    name: 'a model of Gemini without its provider, which LiteLLM asks at Vertex',
    file: list(entry('g', 'model: gemini-3.8-flash, vertex_project: p, vertex_location: global')),
    models: ['g'],
    check: (config) => {
      const { base_url: url, accounts } = upstreamOf(config, 'vertex_ai')
      assert.deepEqual([url, accounts], ['https://aiplatform.googleapis.com', [{ name: 'main', google: {} }]])
      assert.equal(modelOf(config, 'g')['upstream_model'], 'google/gemini-3.8-flash')
    },
  },
  {
    name: 'OpenAI beside Azure, which meet on chat',
    file: list(
      entry('g', 'model: gpt-6-luna, api_key: k, organization: org-1'),
      entry('g', `model: azure/g, api_base: "https://r.openai.azure.com", api_version: "2025-01-01", api_key: z`),
    ),
    models: ['g'],
    check: (config) => {
      assert.equal(modelOf(config, 'g')['wire'], 'chat')
      const [first] = modelOf(config, 'g')['upstream'] as [Entry]
      assert.deepEqual(first['headers'], { 'openai-organization': 'org-1' })
    },
  },
  {
    name: 'models that do not chat, by mode and by name',
    isEdge: true,
    file: list(
      entry('e', 'model: openai/text-embedding-3-small'),
      entry('i', 'model: openai/x, api_base: "http://h:1/v1"', 'model_info: { mode: image_generation }'),
      entry('c', 'model: deepseek/deepseek-flash', 'model_info: { mode: chat }'),
    ),
    models: ['c'],
    left: ['model_list[0].model_name', 'model_list[0].litellm_params.model', 'model_list[1].model_info.mode'],
  },
  {
    name: 'credentials in a list',
    file: `${list(entry('m', 'model: xai/grok-4.5, litellm_credential_name: main'))}credential_list:\n  - { credential_name: main, credential_values: { api_key: ${env('XK')} } }`,
    models: ['m'],
    check: (config) => assert.match(JSON.stringify(upstreamOf(config, 'xai')), /"key":"\$\{XK\}"/),
  },
  {
    name: 'settings of the whole proxy',
    file: `${list(entry('m', 'model: groq/openai/gpt-oss-20b, temperature: 0.2, timeout: 9'))}litellm_settings: { drop_params: true, request_timeout: 90, num_retries: 3, json_logs: true, cache: true, callbacks: [otel] }\nrouter_settings: { routing_strategy: least-busy, stream_timeout: 20, redis_host: h }\ngeneral_settings: { master_key: sk-secret-1, database_url: "postgresql://u:secret-p@h/d", max_request_size_mb: 2, strange: 1 }\nenvironment_variables: { A: secret-b }`,
    models: ['m'],
    left: ['general_settings.strange', 'environment_variables.A', 'litellm_settings.cache'],
    check: (config) => {
      assert.deepEqual(config['timeouts'], { first_byte_json: '9s', first_byte_stream: '20s' })
      assert.deepEqual(config['limits'], { body_bytes_max: 2_097_152 })
      assert.deepEqual(config['log'], { format: 'json' })
    },
  },
  {
    name: 'a custom provider, headers, and a key that could be none here',
    file: list(
      entry(
        'm',
        `model: my/model, custom_llm_provider: openai, api_base: "https://h.example/v1/", api_key: "two words", extra_headers: { x-a: b }, ${priced}`,
      ),
      entry('p', 'model: perplexity/sonar, input_cost_per_token: 1e-6, output_cost_per_token: 1e-6'),
    ),
    models: ['m', 'p'],
    left: ['model_list[0].litellm_params.api_key'],
    check: (config) => {
      assert.equal((modelOf(config, 'm')['upstream'] as [Entry])[0]['upstream_model'], 'my/model')
      assert.ok(!JSON.stringify(config).includes('two words'))
    },
  },
  {
    isEdge: true,
    name: 'headers of which the gateway writes one itself',
    file: list(
      entry('m', `model: openai/m, api_key: k, extra_headers: { Authorization: "Bearer k", x-a: b }, ${priced}`),
    ),
    models: ['m'],
    left: ['model_list[0].litellm_params.extra_headers'],
    check: (config) => {
      const [first] = modelOf(config, 'm')['upstream'] as [Entry]
      assert.deepEqual(first['headers'], { 'x-a': 'b' })
    },
  },
  {
    name: 'a proxy of a team, with a database, Redis, alerts and logs',
    file: `${list(
      entry(
        'gpt',
        `model: openai/gpt-6-luna, api_key: ${env('OPENAI_API_KEY')}, rpm: 500, tpm: 200000`,
        'model_info: { mode: chat, base_model: gpt-6-luna, supports_vision: true }',
      ),
      entry(
        'claude',
        `model: anthropic/claude-sonnet-5-5, api_key: ${env('ANTHROPIC_API_KEY')}, max_tokens: 8192`,
        'model_info: { id: c1, access_groups: [beta] }',
      ),
      entry(
        'gemini',
        `model: gemini/gemini-3.8-flash, api_key: ${env('GEMINI_API_KEY')}, timeout: 120, stream_timeout: 60`,
      ),
    )}litellm_settings: { drop_params: true, set_verbose: false, json_logs: true, num_retries: 2, request_timeout: 600, success_callback: [langfuse], failure_callback: [langfuse], turn_off_message_logging: true }
router_settings: { routing_strategy: simple-shuffle, num_retries: 2, allowed_fails: 3, cooldown_time: 30, timeout: 300, retry_after: 5, redis_host: ${env('REDIS_HOST')}, redis_port: ${env('REDIS_PORT')}, redis_password: ${env('REDIS_PASSWORD')}, fallbacks: [{ gpt: [claude] }], deployment_affinity_ttl_seconds: 3600 }
general_settings: { master_key: ${env('LITELLM_MASTER_KEY')}, database_url: ${env('DATABASE_URL')}, database_connection_pool_limit: 10, proxy_batch_write_at: 60, alerting: [slack], alerting_threshold: 300, background_health_checks: true, health_check_interval: 300, store_prompts_in_spend_logs: false, ui_access_mode: admin_only, slack_alerting_args: { x: 1 } }`,
    models: ['gpt-only', 'claude', 'gemini', 'gpt'],
    check: (config) => assert.deepEqual(config['timeouts'], { first_byte_json: '300s', first_byte_stream: '300s' }),
  },
  {
    name: 'one name at three providers, each with the key of its own',
    file: `${list(
      entry('tier', `model: groq/openai/gpt-oss-20b, api_key: ${env('GROQ_API_KEY')}`),
      entry('tier', `model: gemini/gemini-3.8-flash, api_key: ${env('GEMINI_API_KEY')}`),
      entry('tier', `model: openrouter/deepseek/deepseek-chat, api_key: ${env('OPENROUTER_API_KEY')}, ${priced}`),
    )}router_settings: { fallbacks: [{ tier: [tier] }] }`,
    models: ['tier'],
    check: (config) => assert.equal((modelOf(config, 'tier')['upstream'] as unknown[]).length, 3),
  },
  {
    name: 'credentials in a list for all models, and marks of prompt caches',
    file: `credential_list:\n  - { credential_name: or, credential_values: { api_key: ${env('OPENROUTER_API_KEY')} }, credential_info: { description: all } }\n${list(
      entry(
        'opus',
        `model: openrouter/anthropic/claude-opus, litellm_credential_name: or, cache_control_injection_points: [{ location: message, role: system }], ${priced}`,
      ),
      entry('haiku', `model: openrouter/anthropic/claude-haiku, litellm_credential_name: or, ${priced}`),
    )}general_settings: { master_key: ${env('LITELLM_MASTER_KEY')} }`,
    models: ['opus', 'haiku'],
  },
  {
    name: 'names of Claude in front of a server at home, for an agent',
    file: `litellm_settings: { drop_params: true, set_verbose: false }\n${list(
      entry('claude-haiku-5-5', 'model: ollama/qwen-coder:7b, api_base: "http://localhost:11434"'),
      entry('claude-sonnet-5-5', 'model: ollama_chat/qwen-coder:480b, api_base: "http://localhost:11434"'),
      entry('claude-real', `model: anthropic/claude-sonnet-5-5, api_key: ${env('REAL_KEY')}`),
    )}`,
    models: ['claude-haiku-5-5', 'claude-sonnet-5-5', 'claude-real'],
  },
  {
    name: 'two accounts of AWS, the second one only if the first has failed',
    file: `${list(
      entry(
        'opus',
        `model: bedrock/eu.anthropic.claude-opus-5-v1:0, aws_region_name: eu-west-1, aws_profile_name: one, order: 1, ${priced}`,
      ),
      entry(
        'opus',
        `model: bedrock/eu.anthropic.claude-opus-5-v1:0, aws_region_name: eu-central-1, aws_profile_name: two, order: 2, ${priced}`,
      ),
    )}router_settings: { allowed_fails: 3, cooldown_time: 30, enable_pre_call_checks: true, num_retries: 3, timeout: 600 }`,
    models: ['opus'],
    check: (config) => assert.equal((modelOf(config, 'opus')['upstream'] as [Entry, Entry])[1]['priority'], 2),
  },
  {
    name: 'Foundry by Entra, with times of its own',
    file: `${list(
      entry(
        'f',
        `model: azure_ai/m, api_base: "https://r.services.ai.azure.com", tenant_id: ${env('T')}, client_id: ${env('C')}, client_secret: ${env('S')}, timeout: 180, stream_timeout: 180, ${priced}`,
      ),
    )}litellm_settings: { request_timeout: 180, drop_params: true, enable_azure_ad_token_refresh: true }`,
    models: ['f'],
    check: (config) => assert.deepEqual(config['timeouts'], { first_byte_json: '180s', first_byte_stream: '180s' }),
  },
  {
    name: 'variables in the file itself, which are put where they are used',
    file: `${list(
      entry('a', `model: openai/x, api_base: ${env('BASE')}, api_key: ${env('KEY')}, ${priced}`),
      entry('b', 'model: deepseek/deepseek-flash'),
    )}environment_variables: { BASE: "https://h.example/v1", KEY: plain-k1, DEEPSEEK_API_KEY: ${env('OTHER')}, LANGFUSE_HOST: h, REDIS_HOST: r }`,
    models: ['a', 'b'],
    check: (config) => {
      assert.equal(upstreamOf(config, 'openai')['base_url'], 'https://h.example/v1')
      assert.match(JSON.stringify(upstreamOf(config, 'openai')), /"key":"plain-k1"/)
      assert.match(JSON.stringify(upstreamOf(config, 'deepseek')), /"key":"\$\{OTHER\}"/)
    },
  },
  {
    name: 'fields that an upstream does not take, and fields beyond its wire',
    file: list(
      entry(
        'v',
        'model: hosted_vllm/q, api_base: "http://10.0.0.5:8000/v1", additional_drop_params: [parallel_tool_calls, user], allowed_openai_params: [top_k, verbosity], drop_params: true, extra_headers: { x-team: a }',
      ),
      entry('w', 'model: hosted_vllm/q2, api_base: "http://10.0.0.5:8000/v1"'),
    ),
    models: ['v', 'w'],
    check: (config) => {
      assert.deepEqual(modelOf(config, 'v')['profile'], {
        extends: 'vllm',
        drops: ['parallel_tool_calls', 'user'],
        accepts: ['top_k', 'strict', 'verbosity'],
      })
      assert.equal(modelOf(config, 'w')['profile'], 'vllm')
    },
  },
  {
    name: 'fields to drop and to accept, besides those of a named profile',
    file: list(
      entry('o', 'model: openai/gpt-6-luna, additional_drop_params: [user], allowed_openai_params: [temperature]'),
      entry('g', 'model: gemini/gemini-3.7-flash, additional_drop_params: [parallel_tool_calls, n]'),
    ),
    models: ['o', 'g'],
    check: (config) => {
      const named = (wire: 'responses' | 'chat', name: string) => resolveProfile(wire, name)
      const [reasoning, gemini] = [named('responses', 'openai-reasoning'), named('chat', 'gemini-3')]
      assert.ok(reasoning.drops.has('temperature') && gemini.drops.has('seed'))
      assert.deepEqual(modelOf(config, 'o')['profile'], {
        extends: 'openai-reasoning',
        drops: [...reasoning.drops, 'user'].filter((field) => field !== 'temperature'),
        accepts: [...reasoning.accepts, 'temperature'],
      })
      assert.deepEqual(modelOf(config, 'g')['profile'], { extends: 'gemini-3', drops: [...gemini.drops, 'n'] })
    },
  },
  {
    name: 'deployments of Azure in three regions, by their limits',
    file: `${list(
      ...['eu', 'us', 'ca'].map((region, at) =>
        entry(
          'gpt',
          `model: azure/gpt-${region}, api_base: "https://${region}.openai.azure.com/", api_version: "2025-01-01-preview", api_key: ${env(`AZURE_${region.toUpperCase()}`)}, rpm: ${(at + 1) * 600}, tpm: 90000`,
          'model_info: { base_model: azure/gpt-6-luna, mode: chat }',
        ),
      ),
    )}router_settings: { routing_strategy: simple-shuffle, allowed_fails_policy: { RateLimitErrorAllowedFails: 2 }, retry_policy: { TimeoutErrorRetries: 2 }, disable_cooldowns: false }`,
    models: ['gpt'],
    check: (config) =>
      assert.deepEqual(
        (modelOf(config, 'gpt')['upstream'] as Entry[]).map(({ weight = 1 }) => weight),
        [1, 2, 3],
      ),
  },
]
