/** The fate of a setting that our configuration lacks, and why. `replaced`: triwire does the same in another way. */
type SettingFate = readonly [fate: 'replaced' | 'left', why: string]

const replaced = (why: string): SettingFate => ['replaced', why]
const left = (why: string): SettingFate => ['left', why]

const retries = replaced(
  'triwire retries and leaves failing accounts alone by rules of its own (docs/configuration.md, Pools)',
)
const routing = replaced(
  'requests go by priority, weight and the health of accounts; conversations stay with one account',
)
const answersCache = left('triwire keeps no answers; it keeps prompt caches of providers warm')
const database = replaced('triwire has a store of its own: set `store`')
const redis = replaced('replicas share the store in PostgreSQL: docs/scaling.md')
const guard = left('triwire does not read or change contents: put a guardrail in front of it')
const logging = replaced('docs/operating.md has the log, and `telemetry` sends traces and metrics')
const people = replaced('people sign in by `sign_in`: docs/sign-in.md')
const defaults = left('a default for requests that do not say it: triwire sends what the client wrote')
const modelTime = left('timeouts hold for all models: set `timeouts`')
const limit = left('no limit of a single upstream: set budgets and limits of keys, and let its 429 move requests')
const known = replaced('profiles and presets have what models can do')
const operators = replaced(
  'operators have tokens of their own: triwire operator create; clients need keys: triwire key create',
)

/**
 * The fate of each setting of LiteLLM in the import, by section and name of the setting
 * (docs.litellm.ai/docs/proxy/config_settings, November 2026).
 */
export const litellmFates: Readonly<Record<string, Readonly<Record<string, SettingFate>>>> = {
  litellm_params: {
    rpm: limit,
    tpm: limit,
    max_parallel_requests: limit,
    max_budget: limit,
    budget_duration: limit,
    timeout: modelTime,
    stream_timeout: modelTime,
    request_timeout: modelTime,
    guardrails: guard,
    enable_azure_ad_token_refresh: replaced('triwire renews the tokens of clouds by itself'),
    max_retries: retries,
    num_retries: retries,
    cooldown_time: retries,
    drop_params: replaced('fields that an upstream does not take are left out by its profile, and `losses` says so'),
    additional_drop_params: left('name the fields in `drops` of a profile'),
    allowed_openai_params: left('name the fields in `accepts` of a profile'),
    max_tokens: defaults,
    max_completion_tokens: defaults,
    temperature: defaults,
    top_p: defaults,
    top_k: defaults,
    frequency_penalty: defaults,
    presence_penalty: defaults,
    stop: defaults,
    seed: defaults,
    n: defaults,
    thinking: defaults,
    reasoning_effort: defaults,
    extra_body: defaults,
    response_format: defaults,
    tools: defaults,
    stream: replaced('the client says whether it wants a stream'),
    tags: left('requests are not routed by tags: give the models names of their own'),
    region_name: left('it is used only for routing by tags and regions'),
    merge_reasoning_content_in_choices: replaced('each wire has a place of its own for reasoning'),
    use_in_pass_through: left('there are no pass-through routes'),
    mock_timeout: left('for trials there is the built-in simulator'),
    mock_response: left('for trials there is the built-in simulator'),
    cache_control_injection_points: replaced('`auto_cache` of the profile sets marks of prompt caches'),
  },
  model_info: {
    mode: replaced('triwire serves models that chat'),
    id: replaced('upstream accounts have names'),
    base_model: replaced('figures are looked up by it'),
    supports_vision: known,
    supports_function_calling: known,
    supports_reasoning: known,
    supports_response_schema: known,
    supports_prompt_caching: known,
    supports_tool_choice: known,
    supports_pdf_input: known,
    supports_system_messages: known,
    supports_parallel_function_calling: known,
    access_groups: replaced('triwire import litellm --keys gives keys the models of their groups'),
    health_check_model: replaced('triwire check --online asks each account'),
    health_check_timeout: replaced('triwire check --online asks each account'),
    description: left('the models list has no descriptions'),
    db_model: replaced('all models are in the file'),
  },
  router_settings: {
    routing_strategy: routing,
    routing_strategy_args: routing,
    enable_pre_call_checks: routing,
    optional_pre_call_checks: routing,
    num_retries: retries,
    max_retries: retries,
    retry_after: retries,
    retry_policy: retries,
    model_group_retry_policy: retries,
    allowed_fails: retries,
    allowed_fails_policy: retries,
    cooldown_time: retries,
    disable_cooldowns: retries,
    max_fallbacks: replaced('a chain has at most four models'),
    redis_host: redis,
    redis_port: redis,
    redis_password: redis,
    redis_url: redis,
    cache_responses: answersCache,
    cache_kwargs: answersCache,
    set_verbose: logging,
    debug_level: logging,
    enable_tag_filtering: left('requests are not routed by tags: give the models names of their own'),
    tag_filtering_match_any: left('requests are not routed by tags: give the models names of their own'),
    content_policy_fallbacks: left('a refusal by a model is an answer: no other model is asked'),
    provider_budget_config: left('no budget of a provider: set budgets of accounts and keys'),
    default_litellm_params: defaults,
  },
  litellm_settings: {
    drop_params: replaced('fields that an upstream does not take are left out by its profile, and `losses` says so'),
    modify_params: replaced('requests are translated for each upstream by its profile'),
    set_verbose: logging,
    callbacks: logging,
    success_callback: logging,
    failure_callback: logging,
    service_callbacks: logging,
    turn_off_message_logging: replaced('contents are never logged'),
    redact_user_api_key_info: replaced('keys are never logged'),
    redact_messages_in_exceptions: replaced('contents are never logged'),
    langfuse_default_tags: logging,
    num_retries: retries,
    allowed_fails: retries,
    cooldown_time: retries,
    cache: answersCache,
    cache_params: answersCache,
    enable_caching_on_provider_specific_optional_params: answersCache,
    guardrails: guard,
    content_policy_fallbacks: left('a refusal by a model is an answer: no other model is asked'),
    max_budget: left('there is no budget for all: set budgets of accounts and keys'),
    budget_duration: left('there is no budget for all: set budgets of accounts and keys'),
    max_internal_user_budget: people,
    internal_user_budget_duration: people,
    default_internal_user_params: people,
    default_team_params: people,
    default_team_settings: people,
    default_key_generate_params: left('say it with each triwire key create'),
    upperbound_key_generate_params: left('say it with each triwire key create'),
    key_generation_settings: operators,
    ssl_verify: left('name the certificates of an upstream in its `ca_file`'),
    public_model_groups: left('a key lists the models that it may use'),
    custom_provider_map: left('code of your own cannot run here: serve it as an upstream'),
    force_ipv4: replaced('both families are tried'),
    store_audit_logs: replaced('triwire audit has what operators changed'),
    telemetry: replaced('nothing is sent anywhere unless you set it'),
  },
  general_settings: {
    master_key: operators,
    admin_user: operators,
    ui_access_mode: operators,
    database_url: database,
    database_connection_pool_limit: database,
    database_connection_timeout: database,
    database_type: database,
    store_model_in_db: left('models of its database are not in this file: add them here by hand'),
    store_prompts_in_spend_logs: replaced('contents are never stored'),
    disable_spend_logs: left('the ledger has every request that is billed'),
    disable_spend_updates: left('the ledger has every request that is billed'),
    maximum_spend_logs_retention_period: replaced('`reporting.keep` bounds figures; the ledger is kept'),
    proxy_batch_write_at: database,
    proxy_budget_rescheduler_min_time: database,
    proxy_budget_rescheduler_max_time: database,
    proxy_batch_polling_interval: database,
    use_redis_transaction_buffer: redis,
    alerting: replaced('`webhooks` report low credit, budgets and upstreams'),
    alerting_threshold: replaced('`webhooks` report low credit, budgets and upstreams'),
    alert_types: replaced('`webhooks` report low credit, budgets and upstreams'),
    alert_to_webhook_url: replaced('`webhooks` report low credit, budgets and upstreams'),
    background_health_checks: replaced('requests show how accounts are; none is asked without need'),
    health_check_interval: replaced('requests show how accounts are; none is asked without need'),
    enable_jwt_auth: people,
    litellm_jwtauth: people,
    custom_auth: left('code of your own cannot run here: use keys or `sign_in`'),
    pass_through_endpoints: left('there are no pass-through routes'),
    completion_model: left('a request names its model'),
    infer_model_from_keys: left('a request names its model'),
    max_parallel_requests: limit,
    global_max_parallel_requests: replaced('`limits.connections_max` bounds connections; memory bounds the rest'),
    allow_requests_on_db_unavailable: replaced('debits wait in `state_dir` while the database is away'),
    disable_master_key_return: operators,
    enforce_user_param: left('labels say for whom a request is: `labels`'),
    forward_client_headers_to_llm_api: left('headers of clients stay here; set `headers` of an upstream'),
    key_management_system: replaced('keys of providers come from variables, `key_file` or `key_command`'),
    key_management_settings: replaced('keys of providers come from variables, `key_file` or `key_command`'),
    coordination_redis: redis,
  },
}

/** The fate of settings that `litellmFates` lacks, by patterns of `section.key`. The first match counts. */
export const litellmPatterns: readonly (readonly [names: RegExp, fate: SettingFate])[] = [
  [/^model_info\.supports_/, known],
  [/^environment_variables\.(LANGFUSE|LANGSMITH|HELICONE|DD|OTEL|SENTRY|ARIZE|PHOENIX|LITELLM_LOG)/, logging],
  [/^environment_variables\.REDIS/, redis],
  [/^environment_variables\.(DATABASE_|DIRECT_URL|STORE_MODEL)/, database],
  [/^environment_variables\.(LITELLM_(MASTER|SALT)_KEY|UI_)/, operators],
  [/^(general|litellm|router)_settings\.redis_/, redis],
  [/^general_settings\.database_/, database],
  [/^general_settings\.alert|slack/, replaced('`webhooks` report low credit, budgets and upstreams')],
  [/^general_settings\.(.*health_check)/, replaced('requests show how accounts are; none is asked without need')],
  [/^general_settings\.ui_/, operators],
  [/^(general|litellm|router)_settings\.(.*callback|.*_logs?$|.*verbose|langfuse|.*logging|otel)/, logging],
  [/^router_settings\.(.*affinity|.*cooldown|.*_fails|.*retr|enable_pre_call|.*pre_call_checks)/, routing],
]

/** The fates of LiteLLM's top-level settings, and of sections that have no table of their own here. */
export const litellmSections: Readonly<Record<string, SettingFate>> = {
  environment_variables: left(
    'set it in the environment of the server, or with systemd or Compose in a file of variables',
  ),
  include: replaced('the settings of the files are here'),
  guardrails: guard,
  prompts: left('triwire stores no prompts'),
  mcp_servers: left('triwire is no MCP gateway'),
  mcp_tools: left('triwire is no MCP gateway'),
  vector_store_registry: left('triwire has no vector stores'),
  search_tools: left('hosted tools of providers are passed on: `hosted_tools`'),
  files_settings: left('triwire has no files API'),
  finetune_settings: left('triwire has no fine-tuning API'),
  callback_settings: logging,
  policies: guard,
}

/** The modes of models that triwire serves. Other modes are embeddings, images, audio, reranking and batches. */
export const chatModes: ReadonlySet<string> = new Set(['chat', 'completion', 'responses'])

/** Matches names of models that do not chat. It is used if the configuration does not name the mode of a deployment. */
export const otherModels =
  /embed|whisper|tts|dall-e|gpt-image|imagen|rerank|moderation|transcribe|stable-diffusion|bge-|veo-|sora/i
