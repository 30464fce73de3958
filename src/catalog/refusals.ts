/**
 * A row of the table of refusals. It is for a refusal whose status alone does not show what the refusal is about
 * (rulings U1, U2). `about` is the operator's account (`spent`, `key`, `denied`), its capacity (`busy`), or the
 * client's request. `sealed` is about items of the request's history that only the provider can read (ruling U13). A
 * refusal fits if it meets all conditions of the row.
 *
 * A refusal can quote a client's words, which must not disable an account. So a row has a code, which is the provider's
 * own word. A row without a code has a status and a pattern for the whole text, from `^` to `$`.
 */
export type Refusal = {
  about: 'spent' | 'key' | 'denied' | 'busy' | 'request' | 'sealed'
  /** HTTP statuses. They are not compared for an error inside an answer, because such an error has no status. */
  status?: readonly number[]
  /** One of the words that classify the refusal (`Fault.classes`). */
  code?: string
  text?: RegExp
  /**
   * Whether the account still serves other requests. It then gets no cooldown, since a cooldown affects all clients.
   */
  isPartial?: boolean
}

const byCode = (about: Refusal['about'], ...codes: string[]): Refusal[] => codes.map((code) => ({ about, code }))
const byText = (about: Refusal['about'], status: readonly number[], text: RegExp): Refusal => ({ about, status, text })
const partly = (row: Refusal): Refusal => ({ ...row, isPartial: true })

/**
 * Codes with which AWS refuses a credential. The credential has expired or is unknown, or the signature is wrong, for
 * example because the clocks differ. The first code is Bedrock's (anthropics/claude-code#28032, 2026-02-24).
 */
export const awsKeyCodes: readonly string[] = [
  'ExpiredTokenException',
  'ExpiredToken',
  'UnrecognizedClientException',
  'InvalidClientTokenId',
  'InvalidSignatureException',
  'SignatureDoesNotMatch',
  'RequestTimeTooSkewed',
  'RequestExpired',
]

/** The refusals by provider. The sources are pages read on 2026-11-27, and threads with the date of the quoted text. */
export const refusals = {
  // https://platform.claude.com/docs/en/api/errors; claude-code# stands for an issue of anthropics/claude-code
  anthropic: [
    // claude-code#66314 (2026-06-08), #38035 (2026-03-24), #72457 (2026-06-30)
    byText('spent', [400], /^Your credit balance is too low to access the \w+ API\. .* or purchase credits\.$/),
    byText('spent', [400], /^You have reached your specified (?:workspace )?API usage limits\. .* at [\d:]+ UTC\.$/),
    byText('denied', [400], /^This organization has been disabled\.$/),
    // claude-code#24690 (2026-02-10): whether a request is refused depends on its prompt
    partly(byText('key', [400], /^This credential is only authorized for use with Claude Code\b/)),
    ...byCode('spent', 'enforced_spend_limit_reached'), // 429
    // Wei-Shaw/sub2api#572 (2026-02-13), router-for-me/CLIProxyAPI#2464 (2026-04-01): shorter prompts are served
    partly(byText('busy', [429], /^Extra usage is required for long context requests\.$/)),
    // platform.claude.com/docs/en/build-with-claude/preserved-thinking/fix-bound-to-a-different-conversation (2026-11):
    // `system`, `tools` or a message before the thinking has changed since
    byText('sealed', [400], /^\S+: Invalid `(?:signature|data)` in `(?:redacted_)?thinking` block\b/),
  ],
  // https://developers.openai.com/api/docs/guides/error-codes: status 429, type `insufficient_quota`
  openai: [
    ...byCode('spent', 'credit_balance_exhausted', 'organization_spend_limit_exceeded', 'project_spend_limit_exceeded'),
    ...byCode('spent', 'organization_usage_limit_exceeded'),
    // Status 429: BerriAI/litellm#2743 (2024-03-29), ztjhz/BetterChatGPT#105 (2023-03-21). Status 400:
    // dfinke/PowerShellAI#127 (2023-05-02).
    ...byCode('spent', 'billing_not_active', 'billing_hard_limit_reached'),
    // continuedev/continue#11449 (2026-03-15), home-assistant/core#120072: 403
    ...byCode('denied', 'access_terminated', 'unsupported_country_region_territory'),
    // brave/pull-merge#100 (2024-03-27), vanna-ai/vanna-flask#11 (2024-06-13), continuedev/continue#10602 (2026-02-17):
    // one request is larger than the tokens of a minute; smaller requests are served
    partly(byText('busy', [429], /^Request too large for \S+ (?:in organization \S+ )?on tokens per min \(TPM\): /)),
    // Lamb-Project/lamb#54 (2025-10-13): streams; continuedev/continue#12031 (2026-04-03): summaries of reasoning
    partly(byText('denied', [400], /^Your organization must be verified to /)),
    // 403: https://developers.openai.com/api/docs/guides/safety-checks/misalignment-monitoring
    ...byCode('request', 'misalignment_policy_violation'),
    // 424: theimaginaryfoundation/what-iff#116 (2026-09-14): the MCP server that the client names
    ...byCode('request', 'external_connector_error'),
    // openai/codex#47967: 429 for the tier `flex`, while other requests are served
    ...byCode('busy', 'flex_unavailable').map(partly),
  ],
  gemini: [
    // can1357/oh-my-pi#449 (2026-03-16): the code is the `reason` of a detail; continuedev/continue#11336;
    // gemini-cli#25198 (2026-04-12)
    ...byCode('key', 'API_KEY_INVALID'),
    byText('key', [400], /^API [Kk]ey (?:not valid|not found|expired)\. Please (?:pass a valid|renew the) API key\.$/),
    // google-gemini/gemini-cli#24641 (2026-04-03); kolbytn/mindcraft#133; dyad-sh/dyad#3626 (2026-06-10)
    // EvanZhouDev/gemini-ai#16 (2024-06-08), where only paid use is served
    byText('denied', [400], /^User location is not supported for the API use(?: without a billing account linked)?\.$/),
    byText('denied', [400], /^Gemini API free tier is not available in your country\. .* in Google AI Studio\.$/),
    byText('spent', [429], /^Your prepayment credits are depleted\. .* to manage your project and billing\.$/),
  ],
  qwen: [
    ...byCode('spent', 'Arrearage'), // hsliuping/TradingAgents-CN#170 (2025-07-25), anomalyco/opencode#22994 (2026-04-17)
    ...byCode('busy', 'insufficient_quota'), // https://help.aliyun.com/en/model-studio/rate-limit: the tokens of a minute
  ],
  // 1Panel-dev/MaxKB#3797 (2025-08-03): the error has the code `invalid_request_error`
  deepseek: [byText('spent', [402], /^Insufficient Balance$/)],
  // MoonshotAI/kimi-code#1857 (2026-07-17), 429; MoonshotAI/Kimi-K2#5 (2025-07-12), 403
  moonshot: byCode('spent', 'exceeded_current_quota_error'),
  xai: [
    // continuedev/continue#10778 (2026-02-24); autohandai/code-cli#545 (2026-09-01), which shows no part of the key
    byText('key', [400], /^Incorrect API key provided(?:: [\w*.-]{0,40})?\. .* https:\/\/console\.x\.ai\.$/),
    // continuedev/continue#10373 (2026-02-09), 429; Anantys-oss/koan#2412 (2026-07-16), 403
    byText('spent', [403, 429], /^Your team [\w-]+ has either used all available credits or .* spending limit\.$/),
    // UKGovernmentBEIS/inspect_ai#2267 (2025-08-12), Wei-Shaw/sub2api#4785 (2026-07-23)
    byText('request', [403], /^Content violates usage guidelines\./),
  ],
  // https://openrouter.ai/docs/api/reference/errors-and-debugging, https://openrouter.ai/docs/use-cases/limits
  openrouter: [
    byText('request', [403], / requires moderation\b.* Your input was flagged for /),
    byText('request', [403], /^Request blocked: prompt injection patterns detected\b/),
    ...byCode('busy', 'openrouter_in_flight_budget'), // 402, while other requests of the account are under way
    // continuedev/continue#11154 (2026-03-07); tailcallhq/forgecode#571 (2025-03-21); anomalyco/opencode#12219
    // (2026-05-04)
    partly(
      byText(
        'spent',
        [402],
        /^(?:This request requires more credits, or fewer max_tokens|More credits are required)\b/,
      ),
    ),
    partly(byText('spent', [402], /^Prompt tokens limit exceeded: /)),
    // dnakov/anon-kode#13 (2025-03-05), truefoundry/models#826
    byText('denied', [404], /^No endpoints \w+ matching your .*data policy\b.*openrouter\.ai\/settings\/privacy$/),
  ],
  litellm: [
    byText('key', [400], /^No connected db\.$/), // BerriAI/litellm#20837 (2026-02-10): LiteLLM does not know the key
    // BerriAI/litellm#40002 (a request that costs more than is left), #4208 (2024-06-15), #14144 (2025-09-01)
    partly(byText('spent', [400, 429], /^Budget has been exceeded! .*Estimated request cost: /)),
    byText('spent', [400, 429], /^Budget has been exceeded! .*(?:Max budget: [\d.e-]+|Team=[\w-]+)$/),
    // SWE-agent/SWE-agent#1296 (2025-09-05): OpenAI's refusal of one large request, as above
    partly(
      byText('busy', [429], /^litellm\.RateLimitError: (?:RateLimitError: )?OpenAIException - Request too large for /),
    ),
    // BerriAI/litellm#1859 (2024-02-06): the budget of the user that the client names
    byText('request', [400, 429], /^ExceededBudget: End User=/),
  ],
  // botocore 1.44.8, `bedrock-runtime`, and docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html (2026-11)
  aws: [
    ...byCode('busy', 'ServiceQuotaExceededException', 'ThrottlingException', 'ModelNotReadyException'), // the first is a 400
    ...byCode('key', ...awsKeyCodes), // 403
    // 404: a wrong id, or a model of another region
    ...byCode('denied', 'ResourceNotFoundException').map(partly),
    // aws-samples/sample-well-architected-acceleration-with-generative-ai#8 (2025-05-29), terricain/aioboto3#352
    // (2024-12-03)
    byText(
      'denied',
      [400],
      /^Invocation of model ID \S+ with on-demand throughput isn\Wt supported\. .* profile that contains this model\.?$/,
    ),
    byText('denied', [400], /^The provided model identifier is invalid\.$/),
    // anthropic-on-aws#251 (2026-07-17): the status is 403. Some answers do not name the exception of AWS.
    byText(
      'denied',
      [400, 403],
      /^Model access is denied due to .* AWS Marketplace actions .* (?:this model|\d+ minutes)\.$/,
    ),
  ],
  // github.com/googleapis/googleapis/blob/master/google/api/error_reason.proto (2026-11)
  google: [
    ...byCode('key', 'ACCESS_TOKEN_EXPIRED', 'ACCESS_TOKEN_TYPE_UNSUPPORTED', 'ACCOUNT_STATE_INVALID'),
    ...byCode('spent', 'BILLING_DISABLED'),
    ...byCode('denied', 'SERVICE_DISABLED', 'IAM_PERMISSION_DENIED', 'CONSUMER_INVALID', 'CONSUMER_SUSPENDED'),
    // genkit-ai/genkit#4688, truefoundry/models#946: 404; yym68686/uni-api#41 (2024-11-11): 400
    partly(
      byText('denied', [404], /^Publisher Model `[^`]+` was not found or your project does not have access to it\..*$/),
    ),
    byText('denied', [400], /^Project `[^`]+` is not allowed to use Publisher Model `[^`]+`\.?$/),
  ],
  // OpenBMB/AgentVerse#140 (2024-09-09), MicrosoftDocs/azure-docs#114013 (2023-08-28): 404
  azure: byCode('denied', 'DeploymentNotFound').map(partly),
} satisfies Record<string, readonly Refusal[]>
