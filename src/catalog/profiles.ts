import { groupByWire, type Profile, type ProfileValues } from './profile.ts'
import { refusals } from './refusals.ts'
import { type ModelWire, modelWireNames } from './wire-names.ts'

/** A part of a profile, laid over the one it extends. `reasoning` and `replayThought` are laid over key by key. */
export type ProfileSetting = Partial<Omit<ProfileValues, 'reasoning' | 'replayThought'>> & {
  /** A named profile; without it the plain one of the wire. */
  extends?: string
  reasoning?: Partial<ProfileValues['reasoning']>
  replayThought?: Partial<ProfileValues['replayThought']>
}

/**
 * The profile of a model: a name of the table below, or a setting of its own, over the plain one of its wire.
 * @throws Error for a name that is unknown, or not for this wire
 */
export function resolveProfile(wire: ModelWire, setting?: string | ProfileSetting): Profile {
  return groupByWire(resolveValues(wire, setting))
}

function resolveValues(wire: ModelWire, setting?: string | ProfileSetting): ProfileValues {
  if (setting === undefined) return plain[wire]
  if (typeof setting === 'string') {
    const mistake = findProfileMistake(wire, setting)
    if (mistake) throw new Error(`profile ${mistake}`)
    return layOver(plain[wire], named[setting]?.[wire] ?? {})
  }
  return layOver(resolveValues(wire, setting.extends), setting)
}

/** The reason why this profile is invalid for a model of this wire, as the end of a sentence. */
export function findProfileMistake(wire: ModelWire, name: string): string | undefined {
  if (!Object.hasOwn(named, name)) return `must be a map, or one of: ${profileNames.join(', ')}`
  const wires = Object.keys(named[name]!)
  return wires.includes(wire) ? undefined : `${name} is for ${wires.join(', ')}; this model's wire is ${wire}`
}

function layOver(base: ProfileValues, { extends: _, ...setting }: ProfileSetting): ProfileValues {
  return {
    ...base,
    ...setting,
    reasoning: { ...base.reasoning, ...setting.reasoning },
    replayThought: { ...base.replayThought, ...setting.replayThought },
    // A profile only adds to what is dropped (ruling Y13).
    routingFields: [...base.routingFields, ...(setting.routingFields ?? [])],
    routingContainers: [...base.routingContainers, ...(setting.routingContainers ?? [])],
  }
}

const anyChoice = ['auto', 'none', 'required', 'named'] as const

/**
 * An upstream of which nothing is known, of a wire without ways of its own. A field that could make such an upstream refuse the
 * request (reasoning, fields of one vendor) is left out. An operator who knows better names a profile.
 */
const plainest: ProfileValues = {
  maxField: 'max_completion_tokens',
  minOutput: 1,
  // A model that does not reason answers 400 to a reasoning wish.
  reasoning: { style: 'none', levels: ['low', 'medium', 'high'], canDisable: false },
  hiddenReasoning: 'asked',
  reasoningField: 'auto',
  replayThought: { when: 'never', required: false },
  drops: new Set(),
  accepts: new Set(),
  toolSchemas: 'any',
  toolChoice: new Set(anyChoice),
  toolIdStyle: 're64',
  toolNameMax: 64,
  maxStops: 4,
  operatorInPlace: 'any',
  // Few servers besides the wire's author know the role.
  developerRole: false,
  images: true,
  files: false,
  // The wire's tool messages are text only.
  toolImages: 'follow_up',
  shape: 'schema',
  prefill: 'none',
  nullContent: 'null',
  unprovenThought: 'remove',
  stringOnly: false,
  autoCache: 'off',
  autoCacheSameWire: false,
  cacheLife: '5m',
  usageQuirk: 'none',
  // Never guessed: a model may say a thing twice (ruling Y4).
  cumulative: [],
  strictFields: false,
  assistantFirst: false,
  oneSamplingField: false,
  remoteMedia: 'pass',
  storedFiles: 'pass',
  // Nobody knows of it that it has no tools of its own.
  charges: ['calls'],
  costlyBetas: ['context-1m-*'],
  routingFields: [],
  routingContainers: [],
  answerNames: [],
  refusals: [],
  accountFaults: [],
  requestFaults: [],
  preferStream: false,
}

/** Differences of a plain upstream by its wire: what it takes beside that, and limits of the wire itself. */
const wireWays: Partial<Record<ModelWire, ProfileSetting>> = {
  messages: {
    maxField: 'max_tokens',
    accepts: new Set(['top_k']),
    toolNameMax: 128,
    // The wire sets no bound.
    maxStops: Number.POSITIVE_INFINITY,
    // Only between a user turn and an assistant turn (R-SYS 3).
    operatorInPlace: 'message_rule',
    files: true,
    toolImages: 'native',
    prefill: 'native',
    // Ruling T5.
    autoCache: 'auto',
  },
  responses: {
    // The wire's documented floor (R-MAX).
    minOutput: 16,
    accepts: new Set(['prompt_cache_key', 'safety_identifier', 'verbosity', 'allowed_tools', 'strict']),
    // The wire has no stop sequences.
    maxStops: 0,
    developerRole: true,
    files: true,
    toolImages: 'native',
    // Its models reason unasked, and tell a summary at most.
    hiddenReasoning: 'unless_off',
  },
}

const plain = Object.fromEntries(
  modelWireNames.map((wire) => [wire, layOver(plainest, wireWays[wire] ?? {})]),
) as Record<ModelWire, ProfileValues>

/** Fields that the reasoning models of the wire's author refuse, since they sample at fixed settings. */
const fixedSampling = new Set([
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'logprobs',
  'top_logprobs',
  'logit_bias',
])

/** "object schema missing properties", "array schema missing items", and no `anyOf` "at the top level". */
const openaiTools: ProfileSetting = {
  toolSchemas: 'plain',
  strictFields: true,
  // Clients may ask for a cache of twelve hours (`prompt_cache_options.ttl`), at 2.5 times the input.
  charges: ['cache_write_12h', 'calls'],
  refusals: refusals.openai,
}

const openaiChat: ProfileSetting = {
  ...openaiTools,
  accepts: new Set(['prompt_cache_key', 'safety_identifier', 'strict', 'allowed_tools']),
  developerRole: true,
  files: true,
  // "string too long, expected a maximum length of 40" is what a longer call id gets.
  toolIdStyle: 'len40',
}

/** The levels every reasoning model of the vendor takes; a newer one's `minimal` or `xhigh` is a setting of the model. */
const effort: Profile['reasoning'] = {
  style: 'effort',
  levels: ['low', 'medium', 'high'],
  default: 'medium',
  canDisable: false,
}

const anthropic: ProfileSetting = {
  // Without a thinking field these models do not think.
  reasoning: {
    style: 'adaptive',
    levels: ['low', 'medium', 'high', 'xhigh', 'max'],
    default: 'none',
    canDisable: true,
  },
  // These models show only a summary of it.
  hiddenReasoning: 'asked',
  // Its own models continue a greeting of theirs (ruling T23).
  assistantFirst: true,
  // "role 'system' is not supported on this model", until Opus 4.8.
  operatorInPlace: 'first_only',
  // "This model does not support assistant message prefill", since 4.6.
  prefill: 'none',
  // "Extra inputs are not permitted"; hence also ruling P5.
  strictFields: true,
  // With `strict`, arguments of a call follow the closed form of the tool's schema:
  // platform.claude.com/docs/en/agents-and-tools/tool-use/strict-tool-use.
  accepts: new Set(['top_k', 'strict']),
  // "For 'integer' type, property 'minimum' is not supported", "'additionalProperties' must be explicitly set to false".
  shape: 'closed',
  // Current models refuse `temperature` beside `top_p`.
  oneSamplingField: true,
  // 1.25 times the input for five minutes, twice for an hour; clients may ask for either.
  charges: ['cache_write', 'cache_write_1h', 'calls'],
  refusals: refusals.anthropic,
}

const fixedAnthropic: ProfileSetting = {
  ...anthropic,
  drops: new Set(['temperature', 'top_p', 'top_k']),
  operatorInPlace: 'message_rule',
}

const googleEnvelope: ProfileValues['envelope'] = { version: 'vertex-2023-10-16', omits: ['model'], betas: 'header' }
const bedrockEnvelope: ProfileValues['envelope'] = {
  version: 'bedrock-2023-05-31',
  omits: ['model', 'stream'],
  betas: 'body',
}

/** A server of the operator's own would fetch addresses of a client from inside the network (B13), and sends no bill. */
const selfHosted: ProfileSetting = { remoteMedia: 'refuse', charges: [] }

/** The levels of reasoning that model servers on one's own machines take, each in the words of the wire. */
const switchable: Profile['reasoning'] = { style: 'effort', levels: ['low', 'medium', 'high'], canDisable: true }

/** Model servers speak all three wires but hand the turns to a template, which wants its system text first. */
const modelServer: ProfileSetting = {
  maxField: 'max_tokens',
  accepts: new Set(['top_k']),
  toolIdStyle: 'free',
  maxStops: Number.POSITIVE_INFINITY,
  operatorInPlace: 'first_only',
  developerRole: false,
  // Templates iterate over it.
  nullContent: 'empty',
  // They hide nothing of what a model says.
  hiddenReasoning: 'never',
  ...selfHosted,
}

/** llama.cpp serves one model, and names it by its file. */
const anyModel = ['*']

/** Words of llama.cpp, with status 500, about an image or a recording for a model of text. */
const unsupportedInput = ['input is not supported']

const liteLlm: ProfileSetting = {
  // LiteLLM passes the first four on, and drops the others silently.
  maxStops: 4,
  refusals: refusals.litellm,
  // LiteLLM passes on the error of the server behind it, with its status.
  requestFaults: unsupportedInput,
  // LiteLLM routes by them (docs.litellm.ai/docs/proxy/tag_routing), reads metadata in two places, and merges the first of the
  // containers into what it sends (docs.litellm.ai/docs/completion/provider_specific_params).
  routingFields: ['metadata.tags'],
  routingContainers: ['extra_body', 'litellm_params', 'litellm_metadata'],
}

/** The built-in simulator takes everything its wire knows, so that every translation can be tried on it. */
const simulated: ProfileSetting = {
  reasoning: { style: 'effort', levels: ['low', 'medium', 'high'], canDisable: true },
  hiddenReasoning: 'asked',
  charges: [],
  accepts: new Set(['top_k', 'verbosity', 'prompt_cache_key', 'safety_identifier', 'allowed_tools', 'strict']),
  developerRole: true,
  files: true,
  assistantFirst: true,
  replayThought: { when: 'all', required: false },
}

/** The chat-compatible endpoint of Gemini. */
const gemini: ProfileSetting = {
  maxField: 'max_tokens',
  reasoning: effort,
  hiddenReasoning: 'unless_off',
  // An unknown name in the body is a 400.
  drops: new Set(['logit_bias', 'user', 'store', 'service_tier', 'parallel_tool_calls', 'frequency_penalty']),
  strictFields: true,
  maxStops: 5,
  operatorInPlace: 'first_only',
  refusals: refusals.gemini,
}

/** By name and wire: what differs from the plain profile of that wire, and why. */
const named: Record<string, Partial<Record<ModelWire, ProfileSetting>>> = {
  'default-chat': { chat: {} },
  'default-messages': { messages: {} },
  'default-responses': { responses: {} },

  anthropic: { messages: anthropic },
  // Models after Opus 4.6: any sampling setting but the default is refused.
  'anthropic-fixed-sampling': { messages: fixedAnthropic },
  // Models before adaptive thinking: it is asked for as a number of tokens.
  'anthropic-budget': {
    messages: { ...anthropic, reasoning: { ...anthropic.reasoning, style: 'budget' }, prefill: 'native' },
  },
  // Claude after Opus 4.6, at both clouds below.
  'anthropic-google-fixed-sampling': { messages: { ...fixedAnthropic, envelope: googleEnvelope } },
  'anthropic-mantle-fixed-sampling': { messages: { ...fixedAnthropic, shape: 'none' } },
  // Claude at `rawPredict` of Google (@anthropic-ai/vertex-sdk 1.1.3; docs.cloud.google.com, 2026-11).
  'anthropic-google': { messages: { ...anthropic, envelope: googleEnvelope } },
  // Claude at `bedrock-mantle`, which refuses `output_config.format` (docs.aws.amazon.com/bedrock, 2026-11).
  'anthropic-mantle': { messages: { ...anthropic, shape: 'none' } },
  // Claude at `InvokeModel` of Bedrock (@anthropic-ai/bedrock-sdk 1.1.3; docs.aws.amazon.com/bedrock, 2026-11).
  'anthropic-bedrock': { messages: { ...anthropic, envelope: bedrockEnvelope } },

  openai: { chat: openaiChat, responses: openaiTools },
  'openai-reasoning': {
    chat: {
      ...openaiChat,
      reasoning: effort,
      hiddenReasoning: 'unless_off',
      accepts: new Set([...openaiChat.accepts!, 'verbosity']),
      // "Use 'max_completion_tokens' instead."
      drops: new Set([...fixedSampling, 'max_tokens']),
      // They take no `stop`; the gateway cuts instead.
      maxStops: 0,
    },
    responses: { ...openaiTools, reasoning: effort, drops: fixedSampling },
  },

  deepseek: {
    chat: {
      maxField: 'max_tokens',
      // DeepSeek thinks unless that is turned off (https://api-docs.deepseek.com/guides/thinking_mode), and shows all of it.
      reasoning: {
        style: 'switch',
        levels: ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
        default: 'high',
        canDisable: true,
        // "Thinking mode does not support this tool_choice" (deepseek-ai/DeepSeek-V3#1376).
        forcedCalls: false,
      },
      hiddenReasoning: 'never',
      reasoningField: 'reasoning_content',
      // A tool turn that lacks its reasoning text is a 400 in thinking mode.
      replayThought: { when: 'tool_turns', required: true },
      maxStops: 16,
      images: false,
      shape: 'json',
      // `prompt_cache_hit_tokens` and `prompt_cache_miss_tokens`.
      usageQuirk: 'cache_hit_fields',
      refusals: refusals.deepseek,
    },
    // "The `content[].thinking` in the thinking mode must be passed back to the API."
    messages: { unprovenThought: 'pass', refusals: refusals.deepseek },
  },
  xai: {
    chat: {
      // Which of its models reason is in their names; what most of them tell of it is nothing.
      hiddenReasoning: 'unless_off',
      reasoningField: 'reasoning_content',
      // Its reasoning models refuse these, and `stop`.
      drops: new Set(['presence_penalty', 'frequency_penalty']),
      maxStops: 0,
      // `completion_tokens` is without the reasoning tokens.
      usageQuirk: 'excl_reasoning',
      refusals: refusals.xai,
    },
    responses: { drops: new Set(['presence_penalty', 'frequency_penalty']), refusals: refusals.xai },
  },
  mistral: {
    chat: {
      maxField: 'max_tokens',
      hiddenReasoning: 'never',
      // Its usage comes unasked; unknown fields are a 422.
      drops: new Set([
        'stream_options',
        'user',
        'store',
        'seed',
        'logit_bias',
        'logprobs',
        'top_logprobs',
        'service_tier',
      ]),
      strictFields: true,
      toolIdStyle: 'alnum9',
      // "Unexpected role 'system' after role 'assistant'", "Unexpected role 'user' after role 'tool'".
      operatorInPlace: 'first_only',
      afterResults: 'Done.',
      prefill: 'flag:prefix',
      nullContent: 'empty',
    },
  },
  moonshot: {
    chat: {
      maxField: 'max_tokens',
      hiddenReasoning: 'never',
      reasoningField: 'reasoning_content',
      replayThought: { when: 'tool_turns', required: true },
      toolChoice: new Set(['auto', 'none']),
      // Its models were trained on `functions.<name>:<n>` and stumble over other ids.
      toolIdStyle: 'fn_index',
      shape: 'json',
      prefill: 'flag:partial',
      usageQuirk: 'top_level_cached',
      refusals: refusals.moonshot,
    },
    // "thinking is enabled but reasoning_content is missing in assistant tool call message"
    messages: { unprovenThought: 'pass', refusals: refusals.moonshot },
  },
  qwen: {
    chat: {
      maxField: 'max_tokens',
      reasoning: {
        ...{ style: 'toggle', field: 'enable_thinking', levels: ['medium'], default: 'none', canDisable: true },
        // "tool_choice … does not support being set to required or object in thinking mode" (cloudwego/eino#994).
        forcedCalls: false,
      },
      hiddenReasoning: 'never',
      reasoningField: 'reasoning_content',
      accepts: new Set(['top_k']),
      toolChoice: new Set(['auto', 'none', 'named']),
      operatorInPlace: 'first_only',
      shape: 'json',
      prefill: 'flag:partial',
      // Several of its models think only in streams.
      preferStream: true,
      refusals: refusals.qwen,
    },
  },
  gemini: { chat: gemini },
  // Gemini refuses a call of the conversation without its signature. For a call that another model made, it accepts this one
  // (https://ai.google.dev/gemini-api/docs/thought-signatures).
  'gemini-3': { chat: { ...gemini, callSignature: 'skip_thought_signature_validator' } },
  openrouter: {
    chat: {
      maxField: 'max_tokens',
      // OpenRouter drops the reasoning fields for models that do not reason.
      reasoning: { style: 'effort', levels: ['minimal', 'low', 'medium', 'high'], canDisable: true },
      // Some of them keep it to themselves.
      hiddenReasoning: 'unless_off',
      reasoningField: 'reasoning',
      // Kimi refuses a call of the present tool loop whose thought is missing (earendil-works/pi#989).
      replayThought: { when: 'tool_turns', required: false },
      accepts: new Set(['top_k', 'verbosity']),
      refusals: refusals.openrouter,
    },
  },

  // Measured with 0.32 (docs/servers.md). Arguments are held to a tool's schema only where `strict` says so.
  vllm: {
    chat: { ...modelServer, accepts: new Set(['top_k', 'strict']), maxStops: 4, reasoning: switchable },
    messages: {
      maxStops: 4,
      reasoning: { ...switchable, style: 'budget' },
      autoCache: 'off',
      hiddenReasoning: 'never',
      ...selfHosted,
    },
    responses: {
      accepts: new Set(['verbosity', 'strict']),
      reasoning: switchable,
      hiddenReasoning: 'never',
      // The server seals nothing, and refuses sealed items.
      unprovenThought: 'pass',
      ...selfHosted,
    },
  },
  // Measured with 0.7 (docs/servers.md). On chat it continues a trailing assistant turn, and does not know a named choice.
  'llama-cpp': {
    chat: {
      ...modelServer,
      accepts: new Set(['top_k', 'strict']),
      reasoning: switchable,
      toolChoice: new Set(['auto', 'none', 'required']),
      prefill: 'native',
      requestFaults: unsupportedInput,
      answerNames: anyModel,
    },
    messages: {
      // A named one is read as `any`, and `none` is not read.
      toolChoice: new Set(['auto', 'required']),
      // `output_config` is ignored.
      shape: 'none',
      // Its own has an empty signature.
      unprovenThought: 'pass',
      autoCache: 'off',
      hiddenReasoning: 'never',
      requestFaults: unsupportedInput,
      answerNames: anyModel,
      ...selfHosted,
    },
    responses: {
      reasoning: switchable,
      toolChoice: new Set(['auto', 'none', 'required']),
      // `text.format` is ignored.
      shape: 'none',
      developerRole: false,
      hiddenReasoning: 'never',
      requestFaults: unsupportedInput,
      answerNames: anyModel,
      ...selfHosted,
    },
  },
  // Ollama ignores `tool_choice` altogether.
  ollama: {
    chat: { ...modelServer, toolChoice: new Set(['auto']), reasoningField: 'reasoning' },
  },
  // Measured with 1.109 in front of llama.cpp (docs/servers.md). What the server behind it lacks is a setting of the model.
  litellm: {
    chat: { ...modelServer, ...liteLlm, accepts: new Set(['top_k', 'strict']), reasoning: switchable },
    messages: {
      ...liteLlm,
      reasoning: { ...switchable, style: 'budget' },
      autoCache: 'off',
      hiddenReasoning: 'never',
      ...selfHosted,
    },
    responses: {
      ...liteLlm,
      maxStops: 0,
      accepts: new Set(['verbosity', 'strict']),
      reasoning: switchable,
      hiddenReasoning: 'never',
      ...selfHosted,
    },
  },

  simulator: {
    chat: simulated,
    messages: { ...simulated, reasoning: { ...anthropic.reasoning, default: 'none' } },
    responses: simulated,
  },
}

/** Every name a configuration may use. */
export const profileNames = Object.keys(named) as [string, ...string[]]
