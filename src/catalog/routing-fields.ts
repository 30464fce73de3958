/**
 * Request fields with which a client chooses another model, provider, host or key, the number of paid tries, or a price
 * (ruling Y13). They are grouped by the public schema that has them, read in November 2026. `*` stands for any letters.
 * A name applies to every profile, because an upstream may be a proxy for any of these servers.
 */
const fieldsBySource: Readonly<Record<string, readonly string[]>> = {
  // github.com/OpenRouterTeam/typescript-sdk: src/models/chatrequest.ts, messagesrequest.ts, responsesrequest.ts;
  // `route` and `preset`: openrouter.ai/docs/api/reference/overview
  OpenRouter: ['models', 'route', 'preset', 'provider', 'plugins', 'fallbacks'],
  // github.com/perplexityai/perplexity-py: src/perplexity/types/response_create_params.py,
  // chat/completion_create_params.py
  Perplexity: ['models', 'preset', 'ranking_model'],
  // vercel.com/docs/ai-gateway/provider-options
  Vercel: ['providerOptions'],
  // platform.claude.com/docs/en/build-with-claude/fallback-credit. Anthropic's SDKs have `betas`. `anthropic_beta` is
  // in docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-fallback-credit.html
  Anthropic: ['fallbacks', 'fallback_*', 'betas', 'anthropic_beta'],
  // docs.qwencloud.com/developer-guides/text-generation/web-search (each search is billed in addition to the tokens);
  // alibabacloud.com/help/en/model-studio/web-search
  Alibaba: ['enable_search', 'search_options', 'enable_code_interpreter'],
  // cloud.tencent.com/document/product/1729/111007. ChatCompletionsRequest of tencentcloud-sdk-hunyuan has the same
  // fields, but spells their names in another way.
  Tencent: ['enable_enhancement', 'force_search_enhancement', 'enable_deep_search', 'enable_speed_search'],
  // cloud.baidu.com/doc/qianfan-docs/s/Wm8r4sw29
  Baidu: ['web_search'],
  // console.groq.com/docs/api-reference: chooses models and tools of Groq's Compound
  Groq: ['compound_custom'],
  // github.com/vllm-project/vllm: vllm/entrypoints/openai/chat_completion/protocol.py. The field names the host of a
  // remote cache.
  vLLM: ['kv_transfer_params'],
  // github.com/sgl-project/sglang: python/sglang/srt/entrypoints/openai/protocol.py. These fields choose a LoRA
  // adapter, or a worker by its data-parallel rank.
  SGLang: ['lora_path', 'bootstrap_*', '*_dp_rank', 'data_parallel_rank'],
  // github.com/BerriAI/litellm: all_litellm_params of litellm/types/utils.py, CredentialLiteLLMParams of
  // litellm/types/router.py, _BANNED_REQUEST_BODY_PARAMS of litellm/proxy/auth/auth_utils.py,
  // docs.litellm.ai/docs/proxy/{clientside_auth,tag_routing}. A stored prompt (`prompt_id`) may name its own model
  // (docs.litellm.ai/docs/proxy/prompt_management).
  LiteLLM: [
    ...['fallbacks', '*_fallbacks', '*_fallback_*', 'model_*', '*_model', '*_models', 'hf_model_name', 'prompt_id'],
    ...['tags', 'tag_regex', 'enable_tag_filtering', 'fastest_response', 'routing_strategy', '*_router_*'],
    ...['router_settings_override', '_router_weights', 'specific_deployment', 'deployment_*', 'custom_llm_provider'],
    ...[
      'use_litellm_proxy',
      'azure',
      'api_version',
      '*api_base',
      '*base_url',
      '*_endpoint',
      '*_endpoint_url',
      '*_host',
    ],
    ...['region_name', '*_region_name', 'allowed_model_region', 'user_config', 'litellm_embedding_config', '*api_key'],
    ...['provider_affinity_header', 'provider_specific_header', 'headers', 'extra_headers', 'extra_query', 'aws_*'],
    ...['azure_*', 'vertex_*', 'watsonx_*', 's3_*', 'client_id', 'client_secret', 'tenant_id', 'use_xai_oauth'],
    ...['litellm_credential_name', 'configurable_clientside_auth_params', 'secret_fields', 'proxy_server_request'],
    ...['num_retries', 'max_retries', 'retry_*', '*_retry_policy', 'cooldown_time', 'max_agentic_loops', 'mock_*'],
    ...['cost_per_*', '*_cost_per_*', 'max_budget'],
  ],
}

/** Fields that start tools of the provider. The provider bills such a tool extra, or the tool causes more tokens. */
export const paidToolFields: readonly string[] = ['Alibaba', 'Tencent', 'Baidu', 'Groq'].flatMap(
  (source) => fieldsBySource[source]!,
)

/** The names and patterns of all fields in `fieldsBySource`, each once. */
export const routingFields: readonly string[] = [...new Set(Object.values(fieldsBySource).flat())]

/** Betas with which the vendor's own API lets another model answer (platform.claude.com, as above). */
export const routingBetas: readonly string[] = ['server-side-fallback-*', 'fallback-credit-*']

const names = new Map(routingFields.map((row) => [foldName(row), row]))
const patterns = routingFields.filter((row) => row.includes('*')).map((row) => [row, compile([row])] as const)

/**
 * A field name after `foldName`, and the row of the table that matches it. The log gets the row, because the name may
 * contain any text of the client.
 */
type FieldName = { folded: string; row: string | undefined }

/** Names that were read before. Clients send the same dozen names, and matching the patterns takes 0.3 µs. */
const known = new Map<string, FieldName>()
/**
 * The most names that are remembered, and the longest name that is matched with patterns, in characters. Both are
 * limited because clients can invent names.
 */
const knownMax = 1_000
export const nameCharactersMax = 128

export function readFieldName(name: string): FieldName {
  let read = known.get(name)
  if (read !== undefined) return read
  if (name.length > nameCharactersMax) return { folded: name, row: undefined }
  const folded = foldName(name)
  read = { folded, row: names.get(folded) ?? patterns.find(([, pattern]) => pattern.test(folded))?.[0] }
  if (known.size < knownMax) known.set(name, read)
  return read
}

/** Folds the case as case-insensitive readers do. Go's `encoding/json` takes U+017F for an s and U+212A for a k. */
export function foldName(name: string): string {
  return name.toUpperCase().toLowerCase()
}

/**
 * Compiles names and patterns.
 * @param rows names, in which `*` stands for any letters
 * @returns an expression that matches any of the names as a whole, in any case
 */
export function compile(rows: readonly string[]): RegExp {
  const sources = rows.map((one) => one.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*'))
  return new RegExp(`^(?:${sources.join('|')})$`, 'is')
}
