import type { ClientWire } from '../../src/catalog/wire-names.ts'

/** An error with which a provider refuses our account. Sources are beside the rows in src/catalog/refusals.ts. */
export type Sample = {
  profile: string
  wires: readonly ClientWire[]
  status: number
  about: 'spent' | 'key' | 'denied' | 'busy' | 'request' | 'sealed'
  /** Whether the account still serves other requests. */
  isPartial?: true
  /** Whether only the status shows the reason. */
  isBare?: true
  /** The error object, in a body and in a stream. */
  error: { message: string } & Record<string, unknown>
  /** The body of the response, if it is not `{ error }`. */
  body?: object
}

const both = ['chat', 'responses'] as const

function anthropic(about: Sample['about'], message: string, more: Partial<Sample> = {}): Sample {
  const error = { type: 'invalid_request_error', message }
  return { profile: 'anthropic', wires: ['messages'], status: 400, about, error, ...more }
}

function openai(about: Sample['about'], status: number, code: string, type: string, message = 'Refused.'): Sample {
  return { profile: 'openai', wires: both, status, about, error: { message, type, param: null, code } }
}

function gemini(about: Sample['about'], status: number, word: string, message: string, reason?: string): Sample {
  const details = reason && {
    details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'googleapis.com' }],
  }
  const error = { code: status, message, status: word, ...details }
  // Gemini's chat completions endpoint sends the error in an array.
  return { profile: 'gemini', wires: ['chat'], status, about, error, body: [{ error }] }
}

function xai(about: Sample['about'], status: number, code: string, message: string): Sample {
  return { profile: 'xai', wires: both, status, about, error: { message }, body: { code, error: message } }
}

function openrouter(about: Sample['about'], status: number, message: string, more: Partial<Sample> = {}): Sample {
  return { profile: 'openrouter', wires: ['chat'], status, about, error: { message, code: status }, ...more }
}

function liteLlm(
  about: Sample['about'],
  status: number,
  type: string,
  message: string,
  more: Partial<Sample> = {},
): Sample {
  const error = { message, type, param: null, code: `${status}` }
  return { profile: 'litellm', wires: ['messages', ...both], status, about, error, ...more }
}

function aws(about: Sample['about'], status: number, type: string, message: string, more: object = {}): Sample {
  return { profile: 'anthropic', wires: ['messages'], status, about, error: { type, message, ...more } }
}

const reasons = (...words: string[]) => ({ details: words.map((reason) => ({ reason })) })

const google = (about: Sample['about'], status: number, message: string, more: object = {}): Sample => ({
  ...{ profile: 'default-chat', wires: ['chat'], status, about, error: { code: status, message, ...more } },
})

const verify = (what: string) =>
  `Your organization must be verified to ${what}. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization. If you just verified, it can take up to 15 minutes for access to propagate.`

const wrongKey = { wires: ['messages', 'chat', 'responses'] as const, status: 401, about: 'key' as const }

/** Claude's refusal of thinking if anything before it has changed. */
export const bound =
  'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'

/** Each row of src/catalog/refusals.ts has at least one sample. */
export const samples: readonly Sample[] = [
  anthropic(
    'spent',
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
  ),
  anthropic(
    'spent',
    'Your credit balance is too low to access the Claude API. Please go to Plans & Billing to upgrade or purchase credits.',
  ),
  anthropic(
    'spent',
    'You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.',
  ),
  anthropic(
    'spent',
    'You have reached your specified workspace API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.',
  ),
  anthropic('spent', 'Refused.', {
    status: 429,
    error: { type: 'rate_limit_error', message: 'Refused.', details: { error_code: 'enforced_spend_limit_reached' } },
  }),
  anthropic('busy', 'Extra usage is required for long context requests.', {
    status: 429,
    error: { type: 'rate_limit_error', message: 'Extra usage is required for long context requests.' },
    isPartial: true,
  }),
  anthropic('denied', 'This organization has been disabled.'),
  anthropic('sealed', bound),
  anthropic(
    'key',
    'This credential is only authorized for use with Claude Code and cannot be used for other API requests.',
    { isPartial: true },
  ),
  anthropic('key', 'invalid x-api-key', {
    status: 401,
    error: { type: 'authentication_error', message: 'invalid x-api-key' },
  }),
  anthropic('spent', 'Refused.', { status: 402, error: { type: 'billing_error', message: 'Refused.' } }),
  anthropic('denied', 'Refused.', { status: 403, error: { type: 'permission_error', message: 'Refused.' } }),

  openai(
    'spent',
    429,
    'insufficient_quota',
    'insufficient_quota',
    'You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.',
  ),
  openai('sealed', 400, 'invalid_encrypted_content', 'invalid_request_error'),
  openai('spent', 429, 'credit_balance_exhausted', 'insufficient_quota'),
  openai('spent', 429, 'organization_spend_limit_exceeded', 'insufficient_quota'),
  openai('spent', 429, 'project_spend_limit_exceeded', 'insufficient_quota'),
  openai('spent', 429, 'organization_usage_limit_exceeded', 'insufficient_quota'),
  openai(
    'spent',
    429,
    'billing_not_active',
    'billing_not_active',
    'Your account is not active, please check your billing details on our website.',
  ),
  openai('spent', 400, 'billing_hard_limit_reached', 'invalid_request_error', 'Billing hard limit has been reached'),
  openai(
    'denied',
    429,
    'access_terminated',
    'access_terminated',
    'Your access was terminated due to violation of our policies.',
  ),
  {
    ...openai('denied', 400, 'unsupported_value', 'invalid_request_error', verify('stream this model')),
    isPartial: true,
  },
  {
    ...openai('denied', 400, 'unsupported_value', 'invalid_request_error', verify('generate reasoning summaries')),
    isPartial: true,
  },
  ...['in organization org-vyUrKHsIdLcZGKR3zqCqllrS on', 'on'].map(
    (where): Sample => ({
      ...openai(
        'busy',
        429,
        'rate_limit_exceeded',
        'tokens',
        `Request too large for gpt-4o ${where} tokens per min (TPM): Limit 30000, Requested 61337. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.`,
      ),
      isPartial: true,
    }),
  ),
  openai('request', 403, 'misalignment_policy_violation', 'invalid_request_error'),
  {
    ...openai('request', 424, 'http_error', 'external_connector_error'),
    error: {
      message: "Error retrieving tool list from MCP server: 'crm'. Http status code: 401 (Unauthorized)",
      type: 'external_connector_error',
      param: 'tools',
    },
  },
  { ...openai('busy', 429, 'flex_unavailable', 'server_error'), isPartial: true },
  openai('key', 401, 'invalid_api_key', 'invalid_request_error', 'Incorrect API key provided: sk-***.'),
  openai('denied', 403, 'unsupported_country_region_territory', 'request_forbidden'),
  { ...openai('denied', 403, 'unsupported_country_region_territory', 'request_forbidden'), isBare: true },

  gemini('key', 400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', 'API_KEY_INVALID'),
  gemini('key', 400, 'INVALID_ARGUMENT', 'API Key not found. Please pass a valid API key.', 'API_KEY_INVALID'),
  gemini('key', 400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.'),
  gemini('key', 400, 'INVALID_ARGUMENT', 'API key expired. Please renew the API key.'),
  gemini('key', 400, 'INVALID_ARGUMENT', 'API Key not found. Please pass a valid API key.'),
  gemini(
    'denied',
    400,
    'FAILED_PRECONDITION',
    'User location is not supported for the API use without a billing account linked.',
  ),
  gemini('denied', 400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'),
  gemini(
    'denied',
    400,
    'FAILED_PRECONDITION',
    'Gemini API free tier is not available in your country. Please enable billing on your project in Google AI Studio.',
  ),
  gemini(
    'spent',
    429,
    'RESOURCE_EXHAUSTED',
    'Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing.',
  ),

  {
    profile: 'qwen',
    wires: ['chat'],
    status: 400,
    about: 'spent',
    error: {
      code: 'Arrearage',
      param: null,
      message: 'Access denied, please make sure your account is in good standing.',
      type: 'Arrearage',
    },
  },
  {
    profile: 'qwen',
    wires: ['chat'],
    status: 429,
    about: 'busy',
    error: { code: 'insufficient_quota', message: 'You exceeded your current quota.', type: 'insufficient_quota' },
  },

  {
    profile: 'deepseek',
    wires: ['messages', 'chat'],
    status: 402,
    about: 'spent',
    error: { message: 'Insufficient Balance', type: 'unknown_error', param: null, code: 'invalid_request_error' },
  },
  ...[429, 403].map(
    (status): Sample => ({
      profile: 'moonshot',
      wires: ['messages', 'chat'],
      status,
      about: 'spent',
      error: {
        message: 'Your account org-1 <ak-1> is suspended due to insufficient balance, please recharge your account',
        type: 'exceeded_current_quota_error',
      },
    }),
  ),

  xai(
    'key',
    400,
    'Client specified an invalid argument',
    'Incorrect API key provided: na***ys. You can obtain an API key from https://console.x.ai.',
  ),
  xai('key', 400, 'x', 'Incorrect API key provided. You can obtain an API key from https://console.x.ai.'),
  ...[403, 429].map((status) =>
    xai(
      'spent',
      status,
      'Some resource has been exhausted',
      'Your team 16f2151a-40f4-4a80-8ad0-cae00c27e8dd has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit.',
    ),
  ),
  xai('request', 403, 'permission-denied', 'Content violates usage guidelines. '),

  openrouter('spent', 402, 'Insufficient credits. Add more using https://openrouter.ai/settings/credits'),
  openrouter(
    'spent',
    402,
    'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 3919. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account',
    { isPartial: true },
  ),
  openrouter(
    'spent',
    402,
    'More credits are required to run this request. 128000 token capacity required, 19484 available.',
    { isPartial: true },
  ),
  openrouter('spent', 402, 'Prompt tokens limit exceeded: 230799 > 91442. To increase, visit x', { isPartial: true }),
  openrouter('busy', 402, 'Refused.', {
    error: { message: 'Refused.', code: 402, metadata: { limit_source: 'openrouter_in_flight_budget' } },
  }),
  openrouter(
    'request',
    403,
    'anthropic/claude-3.5-sonnet requires moderation on Amazon Bedrock. Your input was flagged for "illicit/violent".',
  ),
  openrouter('request', 403, 'Request blocked: prompt injection patterns detected', {
    error: {
      message: 'Request blocked: prompt injection patterns detected',
      code: 403,
      metadata: { patterns: ['ignore all previous instructions'] },
    },
  }),
  openrouter(
    'denied',
    404,
    'No endpoints found matching your data policy. Check your settings: https://openrouter.ai/settings/privacy',
  ),
  openrouter(
    'denied',
    404,
    'No endpoints available matching your guardrail restrictions and data policy. Configure: https://openrouter.ai/settings/privacy',
  ),

  liteLlm('key', 400, 'no_db_connection', 'No connected db.'),
  liteLlm('spent', 400, 'budget_exceeded', 'Budget has been exceeded! Current cost: 9.7676, Max budget: 9.751'),
  liteLlm('spent', 400, 'auth_error', 'Budget has been exceeded! Team=99c74652-6e33-4dbd-93f3-5b545da15ade'),
  liteLlm(
    'spent',
    429,
    'budget_exceeded',
    'Budget has been exceeded! Key=e7fb Current cost: 0.0, Estimated request cost: 3.64, Max budget: 2.5',
    { isPartial: true },
  ),
  liteLlm(
    'busy',
    429,
    'throttling_error',
    'litellm.RateLimitError: RateLimitError: OpenAIException - Request too large for o3 in organization org-46K30yLFyjdihOTkGsnF1REI on tokens per min (TPM): Limit 30000, Requested 32145. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.',
    { isPartial: true },
  ),
  liteLlm(
    'request',
    400,
    'budget_exceeded',
    'ExceededBudget: End User=ishaan3 over budget. Spend=0.0008, Budget=0.0001',
  ),

  aws('busy', 400, 'ServiceQuotaExceededException', 'Refused.'),
  aws('busy', 429, 'ThrottlingException', 'Too many tokens, please wait before trying again.'),
  aws('busy', 429, 'ModelNotReadyException', 'Refused.'),
  aws('key', 403, 'ExpiredTokenException', 'The security token included in the request is expired'),
  aws('key', 403, 'UnrecognizedClientException', 'The security token included in the request is invalid.', {
    ...reasons('ExpiredToken', 'InvalidClientTokenId', 'InvalidSignatureException', 'SignatureDoesNotMatch'),
  }),
  aws('key', 403, 'RequestTimeTooSkewed', 'Refused.', reasons('RequestExpired')),
  { ...aws('denied', 404, 'ResourceNotFoundException', 'Could not resolve the foundation model.'), isPartial: true },
  aws(
    'denied',
    400,
    'ValidationException',
    'Invocation of model ID anthropic.claude-3-5-sonnet-20240620-v1:0 with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.',
  ),
  aws('denied', 400, 'ValidationException', 'The provided model identifier is invalid.'),
  aws(
    'denied',
    403,
    'AccessDeniedException',
    'Model access is denied due to IAM user or service role is not authorized to perform the required AWS Marketplace actions (aws-marketplace:ViewSubscriptions, aws-marketplace:Subscribe) to enable access to this model.',
  ),
  google(
    'key',
    401,
    'Refused.',
    reasons('ACCESS_TOKEN_EXPIRED', 'ACCESS_TOKEN_TYPE_UNSUPPORTED', 'ACCOUNT_STATE_INVALID'),
  ),
  google('spent', 403, 'Refused.', reasons('BILLING_DISABLED')),
  google(
    'denied',
    403,
    'Refused.',
    reasons('SERVICE_DISABLED', 'IAM_PERMISSION_DENIED', 'CONSUMER_INVALID', 'CONSUMER_SUSPENDED'),
  ),
  {
    ...google(
      'denied',
      404,
      'Publisher Model `projects/1/locations/global/publishers/anthropic/models/x` was not found or your project does not have access to it. Please ensure you are using a valid model version.',
    ),
    isPartial: true,
  },
  google(
    'denied',
    400,
    'Project `1` is not allowed to use Publisher Model `projects/1/locations/asia-southeast1/publishers/anthropic/models/x`',
  ),
  {
    ...openai(
      'denied',
      404,
      'DeploymentNotFound',
      'x',
      'The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.',
    ),
    isPartial: true,
  },

  // Samples of the rules for every profile: a status alone, and a text that means the same as one.
  {
    ...wrongKey,
    profile: 'mistral',
    wires: ['chat'],
    isBare: true,
    error: { message: 'Unauthorized' },
    body: { detail: 'Unauthorized' },
  },
  { ...wrongKey, profile: 'vllm', isBare: true, error: { message: 'Unauthorized' }, body: { error: 'Unauthorized' } },
  { ...wrongKey, profile: 'llama-cpp', error: { message: 'Invalid API Key', type: 'authentication_error', code: 401 } },
  {
    ...wrongKey,
    profile: 'ollama',
    wires: ['chat'],
    isBare: true,
    error: { message: 'unauthorized' },
    body: { error: 'unauthorized' },
  },
  ...(['chat', 'messages', 'responses'] as const).flatMap((wire): Sample[] => [
    { ...wrongKey, profile: `default-${wire}`, wires: [wire], error: { message: 'Refused.', type: 'invalid_api_key' } },
    {
      profile: `default-${wire}`,
      wires: [wire],
      status: 429,
      about: 'spent',
      error: { message: 'Refused.', type: 'insufficient_quota', code: null },
    },
  ]),
]
