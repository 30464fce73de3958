import type { StopReason } from '../../inference/answer.ts'

/*
 * All names from OpenTelemetry's conventions that we write. They are in no other file. The names for generative AI are
 * from open-telemetry/semantic-conventions-genai in November 2026. These conventions are in development and still
 * change. The names for HTTP are those of semantic-conventions 1.44.
 */

export const schemaUrl = 'https://opentelemetry.io/schemas/1.44.0'

export const http = {
  method: 'http.request.method',
  route: 'http.route',
  path: 'url.path',
  scheme: 'url.scheme',
  status: 'http.response.status_code',
  resendCount: 'http.request.resend_count',
  errorType: 'error.type',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  /** The value for an HTTP method that is not known. */
  otherMethod: '_OTHER',
} as const

export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  requestMaxTokens: 'gen_ai.request.max_tokens',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_write.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  modality: 'gen_ai.token.modality',
  /** A label of `genAiMetrics.tokenUsage`, a histogram that the conventions had before 2026. */
  tokenType: 'gen_ai.token.type',
} as const

/** For each stop reason, the common word that most providers use for it. */
export const finishWords: Readonly<Record<StopReason, string>> = {
  end: 'stop',
  stop_sequence: 'stop',
  paused: 'stop',
  max_tokens: 'length',
  window: 'length',
  calls: 'tool_calls',
  refused: 'content_filter',
}

/** The only operation that we report. It is a conversation, on any wire. */
export const chatOperation = 'chat'
/**
 * The modality that we report for all tokens. No wire tells for all its counters whether they are text, audio or other.
 */
export const unknownModality = 'unknown'

/** Attributes that no convention defines. */
export const own = {
  requestId: 'triwire.request.id',
  accountId: 'triwire.account.id',
  keyId: 'triwire.key.id',
  clientWire: 'triwire.wire.client',
  modelWire: 'triwire.wire.model',
  upstream: 'triwire.upstream',
  upstreamAccount: 'triwire.upstream.account',
  attempts: 'triwire.attempts',
  outcome: 'triwire.outcome',
  cost: 'triwire.cost',
  hold: 'triwire.hold',
  usageSource: 'triwire.usage.source',
  losses: 'triwire.losses',
} as const

/**
 * Attributes that are always written as doubles, even if the value is a whole number. An attribute must have one type.
 */
export const doubles: ReadonlySet<string> = new Set([genAi.timeToFirstChunk, own.cost, own.hold])

export const resource = {
  serviceName: 'service.name',
  serviceVersion: 'service.version',
  instance: 'service.instance.id',
  host: 'host.name',
  pid: 'process.pid',
} as const

/** Bucket bounds in seconds. The first is 10 ms; each further bound doubles the previous one. */
const secondBounds = Array.from({ length: 14 }, (_, i) => 0.01 * 2 ** i)
/** Bucket bounds in tokens: powers of 4. */
const tokenBounds = Array.from({ length: 14 }, (_, i) => 4 ** i)

/** The labels of an operation: model, upstream and kind of error. `attributesOf` converts them to attributes. */
const byOperation = ['model', 'upstream', 'error'] as const
const byModel = ['model', 'upstream'] as const

export const genAiMetrics = {
  duration: seconds('gen_ai.client.operation.duration', 'Duration of an operation.'),
  firstChunk: seconds('gen_ai.client.operation.time_to_first_chunk', 'Time until the first chunk of a stream.'),
  inputDistribution: distribution('gen_ai.client.inference.operation.input_tokens', 'Input tokens of an operation.'),
  outputDistribution: distribution('gen_ai.client.inference.operation.output_tokens', 'Output tokens of an operation.'),
  input: usage('input_tokens', 'Input tokens, including cached tokens.'),
  cacheRead: usage('cache_read.input_tokens', 'Input tokens that were read from a cache.'),
  cacheWrite: usage('cache_write.input_tokens', 'Input tokens that were written to a cache.'),
  output: usage('output_tokens', 'Output tokens, including reasoning.'),
  reasoning: usage('reasoning.output_tokens', 'Output tokens that were reasoning.'),
  /** A histogram of the conventions of 2025, for backends that still use it (`telemetry.genai: compat`). */
  tokenUsage: {
    name: 'gen_ai.client.token.usage',
    type: 'histogram',
    labels: ['model', 'upstream', 'tokenType'],
    help: 'Tokens of an operation, by kind. Only with `telemetry.genai: compat`.',
    unit: '{token}',
    bounds: tokenBounds,
  },
} as const

function seconds<const Name extends string>(name: Name, help: string) {
  return { name, type: 'histogram', labels: byOperation, help, unit: 's', bounds: secondBounds } as const
}

function distribution<const Name extends string>(name: Name, help: string) {
  return { name, type: 'histogram', labels: byModel, help, unit: '{token}', bounds: tokenBounds } as const
}

function usage<const Name extends string>(name: Name, help: string) {
  return {
    name: `gen_ai.client.inference.usage.${name}`,
    type: 'counter',
    labels: byModel,
    help,
    unit: '{token}',
  } as const
}

/**
 * The provider names in OpenTelemetry's conventions, by host. For any other host, the provider's name comes from the
 * configuration.
 */
export const providerOfHost: readonly (readonly [host: RegExp, provider: string])[] = [
  [/(?:^|\.)api\.anthropic\.com$/, 'anthropic'],
  [/(?:^|\.)api\.openai\.com$/, 'openai'],
  [/(?:^|\.)openai\.azure\.com$/, 'azure.ai.openai'],
  [/(?:^|\.)services\.ai\.azure\.com$/, 'azure.ai.inference'],
  [/(?:^|\.)amazonaws\.(?:com(?:\.cn)?|eu)$/, 'aws.bedrock'],
  [/(?:^|\.)bedrock-[a-z-]+\.[a-z0-9-]+\.api\.aws$/, 'aws.bedrock'],
  [/(?:^|\.)generativelanguage\.googleapis\.com$/, 'gcp.gemini'],
  [/(?:^|[.-])aiplatform\.(?:[a-z]+\.rep\.)?googleapis\.com$/, 'gcp.vertex_ai'],
  [/(?:^|\.)api\.cohere\.com$/, 'cohere'],
  [/(?:^|\.)api\.deepseek\.com$/, 'deepseek'],
  [/(?:^|\.)api\.groq\.com$/, 'groq'],
  [/(?:^|\.)api\.mistral\.ai$/, 'mistral_ai'],
  [/(?:^|\.)api\.moonshot\.ai$/, 'moonshot_ai'],
  [/(?:^|\.)api\.perplexity\.ai$/, 'perplexity'],
  [/(?:^|\.)api\.x\.ai$/, 'x_ai'],
]
