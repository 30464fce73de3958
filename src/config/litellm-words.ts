// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the configuration look like placeholders
const importCure = 'triwire import litellm FILE makes a configuration of it'
const perMillion = 'credits per million tokens, which is the price of one token times 1,000,000'
const price = (key: string) => `write \`${key}\` under \`prices\`: ${perMillion}`
const whole = (what: string) => `${what}; ${importCure}`

/** Advice for keys of LiteLLM's configuration (docs.litellm.ai/docs/proxy/config_settings, November 2026). */
const litellmKeys: Readonly<Record<string, string>> = {
  model_list: whole('models are listed in `catalog.models`'),
  litellm_settings: importCure,
  router_settings: importCure,
  general_settings: importCure,
  litellm_params: whole('its settings are keys of the model and of an entry of `upstreams`'),
  model_info: whole('its settings are keys of the model'),
  credential_list: whole('keys of providers are under `upstreams.<name>.accounts`'),
  environment_variables: 'set variables in the environment of the server, and write "${NAME}" where they are used',
  model_name: 'write `id`',
  model_group_alias: 'write `also` of the model',
  custom_llm_provider: 'write `wire` and `profile` of the model',
  api_key: 'write `key`, of an entry of `accounts`',
  api_base: 'write `base_url`, of an entry of `upstreams`',
  api_version: 'write `query: { api-version: … }`, of an entry of `upstreams`',
  max_tokens: 'write `max_output_tokens`',
  max_input_tokens: 'write `context_window`',
  input_cost_per_token: price('input'),
  output_cost_per_token: price('output'),
  cache_read_input_token_cost: price('cache_read'),
  cache_creation_input_token_cost: price('cache_write'),
  cache_creation_input_token_cost_above_1hr: price('cache_write_1h'),
  fallbacks: 'write an entry of `catalog.models` with `id` and `chain`',
  default_fallbacks: 'write an entry of `catalog.models` with `id` and `chain`',
  context_window_fallbacks: 'write an entry of `catalog.models` with `id`, `chain` and `when: [over_long]`',
  rpm: 'an upstream has no limit here: `weight` of a route says its share',
  tpm: 'an upstream has no limit here: `weight` of a route says its share',
  routing_strategy: 'write `priority` and `weight` of the routes of a model',
  request_timeout: 'write `timeouts.first_byte_json` and `timeouts.first_byte_stream`',
  master_key: 'operators have tokens: triwire operator create',
  database_url: 'write `store`',
}

/** Returns what to write instead of a key of LiteLLM's, as the end of a sentence. Undefined for any other key. */
export function litellmKeyCure(key: string): string | undefined {
  return Object.hasOwn(litellmKeys, key) ? `it is LiteLLM's: ${litellmKeys[key]}` : undefined
}

/**
 * Finds texts that name a variable as LiteLLM does (`os.environ/NAME`). Keys of accounts and LiteLLM's own keys are
 * skipped, because other checks report them.
 */
export function* litellmReferences(
  value: unknown,
  path: PropertyKey[] = [],
): Iterable<{ path: PropertyKey[]; message: string }> {
  if (typeof value === 'string') {
    const [, name] = /^os\.environ\/(.*)$/s.exec(value) ?? []
    const last = path.at(-1)
    if (
      name === undefined ||
      (typeof last === 'string' && litellmKeyCure(last)) ||
      (last === 'key' && path.at(-3) === 'accounts')
    )
      return
    const own = /^[A-Za-z_]\w{0,99}$/.test(name) ? name : 'NAME'
    yield { path, message: `is LiteLLM's way to name a variable, which means nothing here; write "\${${own}}"` }
  } else if (Array.isArray(value)) for (const [at, one] of value.entries()) yield* litellmReferences(one, [...path, at])
  else if (typeof value === 'object' && value !== null)
    for (const [key, one] of Object.entries(value)) yield* litellmReferences(one, [...path, key])
}
