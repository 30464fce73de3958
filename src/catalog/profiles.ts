import { groupByWire, type Profile, type ProfileValues } from './profile.ts'
import { refusals } from './refusals.ts'
import { type ModelWire, modelWireNames } from './wire-names.ts'

/**
 * Settings that replace those of the profile in `extends`. Members of `reasoning` and `replayThought` may be left out.
 */
export type ProfileSetting = Partial<Omit<ProfileValues, 'reasoning' | 'replayThought'>> & {
  /** The name of the extended profile. Without a name, the plain profile of the wire is extended. */
  extends?: string
  reasoning?: Partial<ProfileValues['reasoning']>
  replayThought?: Partial<ProfileValues['replayThought']>
}

/**
 * Makes the profile of a model from the plain profile of its wire. `setting` is a name in the table below, or the
 * settings that differ.
 * @throws Error for an unknown name, or a name that this wire does not have
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

/**
 * Explains why this profile is invalid for a model of this wire, as the end of a sentence; undefined if it is valid.
 */
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
    // A profile never shortens these lists of fields to drop; it only adds to them (ruling Y13).
    routingFields: [...base.routingFields, ...(setting.routingFields ?? [])],
    routingContainers: [...base.routingContainers, ...(setting.routingContainers ?? [])],
  }
}

const anyChoice = ['auto', 'none', 'required', 'named'] as const

/**
 * The profile of an unknown upstream. Each wire changes some of these values (`wireWays`). A field that could make the
 * upstream refuse the request is left out, such as reasoning or a field of one vendor. An operator who knows the
 * upstream names a profile.
 */
const plainest: ProfileValues = {
  maxField: 'max_completion_tokens',
  minOutput: 1,
  // A model that does not reason answers 400 to a request for reasoning.
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
  toolNameStart: 'any',
  maxStops: 4,
  operatorInPlace: 'any',
  // Few servers besides the wire's author know the role `developer`.
  developerRole: false,
  images: true,
  files: false,
  // Tool messages of chat can contain only text.
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
  // By default, no piece of an answer counts as a repetition, because a model may repeat its own words (ruling Y4).
  cumulative: [],
  strictFields: false,
  assistantFirst: false,
  oneSamplingField: false,
  remoteMedia: 'pass',
  storedFiles: 'pass',
  // An unknown upstream may run tools of its own, and charge for their calls.
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

/** For each wire: the settings in which its profile differs from `plainest`. */
const wireWays: Partial<Record<ModelWire, ProfileSetting>> = {
  messages: {
    maxField: 'max_tokens',
    accepts: new Set(['top_k']),
    toolNameMax: 128,
    // The wire sets no limit on stop sequences.
    maxStops: Number.POSITIVE_INFINITY,
    // System turns are accepted only between a user turn and an assistant turn (R-SYS 3).
    operatorInPlace: 'message_rule',
    files: true,
    toolImages: 'native',
    prefill: 'native',
    // A request gets cache marks if further requests are likely to follow it (ruling T5).
    autoCache: 'auto',
  },
  responses: {
    // The smallest output cap that the wire documents, in tokens (R-MAX).
    minOutput: 16,
    accepts: new Set(['prompt_cache_key', 'safety_identifier', 'verbosity', 'allowed_tools', 'strict']),
    // The wire has no stop sequences.
    maxStops: 0,
    developerRole: true,
    files: true,
    toolImages: 'native',
    // Models of this wire reason by default, and show at most a summary.
    hiddenReasoning: 'unless_off',
  },
}

const plain = Object.fromEntries(
  modelWireNames.map((wire) => [wire, layOver(plainest, wireWays[wire] ?? {})]),
) as Record<ModelWire, ProfileValues>

/** Request fields that the reasoning models of the wire's own vendor refuse, because their sampling is fixed. */
const fixedSampling = new Set([
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'logprobs',
  'top_logprobs',
  'logit_bias',
])

/**
 * OpenAI rejects tool schemas that are not `plain`. Its errors are "object schema missing properties" and "array schema
 * missing items". A third error says that `anyOf` is not allowed "at the top level".
 */
const openaiTools: ProfileSetting = {
  toolSchemas: 'plain',
  strictFields: true,
  // Clients may ask for a cache of twelve hours (`prompt_cache_options.ttl`), at 2.5 times the input price.
  charges: ['cache_write_12h', 'calls'],
  refusals: refusals.openai,
}

const openaiChat: ProfileSetting = {
  ...openaiTools,
  accepts: new Set(['prompt_cache_key', 'safety_identifier', 'strict', 'allowed_tools']),
  developerRole: true,
  files: true,
  // The vendor refuses a longer call id: "string too long, expected a maximum length of 40".
  toolIdStyle: 'len40',
}

/** The levels that all of OpenAI's reasoning models accept. Some newer ones also have `minimal` or `xhigh`. */
const effort: Profile['reasoning'] = {
  style: 'effort',
  levels: ['low', 'medium', 'high'],
  default: 'medium',
  canDisable: false,
}

const anthropic: ProfileSetting = {
  // If a request has no thinking field, these models do not reason.
  reasoning: {
    style: 'adaptive',
    levels: ['low', 'medium', 'high', 'xhigh', 'max'],
    default: 'none',
    canDisable: true,
  },
  // These models show only a summary of their reasoning.
  hiddenReasoning: 'asked',
  // Claude continues a conversation that begins with its own greeting (ruling T23).
  assistantFirst: true,
  // Models until Opus 4.8 answer with the error "role 'system' is not supported on this model".
  operatorInPlace: 'first_only',
  // Since 4.6, Claude models refuse a prefill with "This model does not support assistant message prefill".
  prefill: 'none',
  // Unknown fields get the error "Extra inputs are not permitted". Ruling P5 follows from that.
  strictFields: true,
  // With `strict`, arguments of a call follow the closed form of the tool's schema:
  // platform.claude.com/docs/en/agents-and-tools/tool-use/strict-tool-use.
  accepts: new Set(['top_k', 'strict']),
  // A schema needs the closed form (see `closeSchema`). Otherwise the errors are "For 'integer' type, property
  // 'minimum' is not supported" and "'additionalProperties' must be explicitly set to false".
  shape: 'closed',
  // Current models refuse `temperature` together with `top_p`.
  oneSamplingField: true,
  // A cache write costs 1.25 times the input price for five minutes, and twice the input price for an hour.
  charges: ['cache_write', 'cache_write_1h', 'calls'],
  refusals: refusals.anthropic,
}

const fixedAnthropic: ProfileSetting = {
  ...anthropic,
  drops: new Set(['temperature', 'top_p', 'top_k']),
  operatorInPlace: 'message_rule',
}

const thinkingAnthropic: ProfileSetting = {
  ...fixedAnthropic,
  // `thinking: {"type": "disabled"}` gets the error "is not supported for this model".
  reasoning: { ...anthropic.reasoning, default: 'high', canDisable: false },
  // Forced calls get the error 'type "tool" and "any" are not supported for this model'.
  toolChoice: new Set(['auto', 'none']),
}

const googleEnvelope: ProfileValues['envelope'] = { version: 'vertex-2023-10-16', omits: ['model'], betas: 'header' }
const bedrockEnvelope: ProfileValues['envelope'] = {
  version: 'bedrock-2023-05-31',
  omits: ['model', 'stream'],
  betas: 'body',
}

/** Settings for an operator's own server. It sends no bill, and could fetch media from inside the network (B13). */
const selfHosted: ProfileSetting = { remoteMedia: 'refuse', charges: [] }

/** The levels of reasoning that self-hosted model servers accept. Reasoning can also be switched off. */
const switchable: Profile['reasoning'] = { style: 'effort', levels: ['low', 'medium', 'high'], canDisable: true }

/** Model servers (such as vLLM) have all three wires, but pass turns to a template that expects system text first. */
const modelServer: ProfileSetting = {
  maxField: 'max_tokens',
  accepts: new Set(['top_k']),
  toolIdStyle: 'free',
  maxStops: Number.POSITIVE_INFINITY,
  operatorInPlace: 'first_only',
  developerRole: false,
  // The chat templates of model servers loop over the content, so null fails.
  nullContent: 'empty',
  // Model servers hide nothing that a model writes.
  hiddenReasoning: 'never',
  ...selfHosted,
}

/** A server of llama.cpp has one model. Its answers name the model's file, so any name is accepted. */
const anyModel = ['*']

/** llama.cpp answers with these words and status 500 if a text-only model receives an image or a recording. */
const unsupportedInput = ['input is not supported']

const liteLlm: ProfileSetting = {
  // LiteLLM passes on the first four stop sequences, and drops the others silently.
  maxStops: 4,
  refusals: refusals.litellm,
  // LiteLLM passes on errors of its upstream servers, such as llama.cpp, with their status.
  requestFaults: unsupportedInput,
  // LiteLLM routes by tags (docs.litellm.ai/docs/proxy/tag_routing), and reads metadata in two places. LiteLLM merges
  // `extra_body` into what it sends (docs.litellm.ai/docs/completion/provider_specific_params).
  routingFields: ['metadata.tags'],
  routingContainers: ['extra_body', 'litellm_params', 'litellm_metadata'],
}

/** The built-in simulator accepts all fields of its wire. So developers can test every translation with it. */
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
  // An unknown name in the body gets a 400, as reported in Vali-98/ChatterUI#227 (`seed`), ed-donner/agents#45
  // (`metadata`), leookun/cursor-byok#112 (`prompt_cache_key`), MinLL/SkyrimNet-GamePlugin#77 (`reasoning`, `top_k`).
  // The last four names are in no report; they are fields that only OpenAI has.
  drops: new Set(
    `logit_bias user store service_tier parallel_tool_calls frequency_penalty seed metadata prompt_cache_key reasoning
     top_k prompt_cache_retention prediction safety_identifier verbosity`.split(/\s+/),
  ),
  strictFields: true,
  // "Invalid function name. Must start with a letter or an underscore." (diegosouzapw/OmniRoute#13715)
  toolNameStart: 'letter',
  maxStops: 5,
  operatorInPlace: 'first_only',
  refusals: refusals.gemini,
}

/**
 * DeepSeek reasons unless a request turns reasoning off, and shows all of it
 * (https://api-docs.deepseek.com/guides/thinking_mode).
 */
const deepseekReasoning: Profile['reasoning'] = {
  style: 'switch',
  levels: ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
  default: 'high',
  canDisable: true,
  // The error is "Thinking mode does not support this tool_choice" (deepseek-ai/DeepSeek-V3#1376).
  forcedCalls: false,
}

const moonshot: ProfileSetting = {
  maxField: 'max_tokens',
  hiddenReasoning: 'never',
  reasoningField: 'reasoning_content',
  replayThought: { when: 'tool_turns', required: true },
  drops: new Set([
    // The error is "invalid temperature: only 1 is allowed for this model" (QuantumNous/new-api#5372).
    ...['temperature', 'top_p', 'presence_penalty', 'frequency_penalty'],
    // With it, a client can choose a cache of one hour. Writes into that cache cost twice the input price, but the
    // usage counts them together with other writes.
    'prompt_cache_options',
  ]),
  toolChoice: new Set(['auto', 'none']),
  accepts: new Set(['prompt_cache_key']),
  // The error is "function name is invalid, must start with a letter" (MoonshotAI/kimi-cli#2531).
  toolNameStart: 'letter',
  // Kimi models were trained on call ids such as `functions.<name>:<n>`, and often fail with other ids.
  toolIdStyle: 'fn_index',
  shape: 'json',
  prefill: 'flag:partial',
  usageQuirk: 'top_level_cached',
  refusals: refusals.moonshot,
}

const qwen: ProfileSetting = {
  maxField: 'max_tokens',
  reasoning: {
    ...{ style: 'toggle', field: 'enable_thinking', levels: ['medium'], default: 'none', canDisable: true },
    // Forced calls get "does not support being set to required or object in thinking mode" (cloudwego/eino#994).
    forcedCalls: false,
    // "Json mode response is not supported when enable_thinking is true" (help.aliyun.com, error-code)
    jsonAnswers: false,
  },
  hiddenReasoning: 'never',
  reasoningField: 'reasoning_content',
  accepts: new Set(['top_k']),
  toolChoice: new Set(['auto', 'none', 'named']),
  operatorInPlace: 'first_only',
  shape: 'json',
  prefill: 'flag:partial',
  // Several of the vendor's models reason only in streams.
  preferStream: true,
  refusals: refusals.qwen,
}

/** Profiles by name and wire: the differences from the plain profile of the wire, and the reasons for them. */
const named: Record<string, Partial<Record<ModelWire, ProfileSetting>>> = {
  'default-chat': { chat: {} },
  'default-messages': { messages: {} },
  'default-responses': { responses: {} },

  anthropic: { messages: anthropic },
  // Models after Opus 4.6 accept only the default sampling settings.
  'anthropic-fixed-sampling': { messages: fixedAnthropic },
  // Opus 5.5, Sonnet 5.5, Fable 5.1 and Mythos 5.1 always think (platform.claude.com, 2026-09).
  'anthropic-always-thinking': { messages: thinkingAnthropic },
  'anthropic-google-always-thinking': { messages: { ...thinkingAnthropic, envelope: googleEnvelope } },
  'anthropic-mantle-always-thinking': { messages: { ...thinkingAnthropic, shape: 'none' } },
  'anthropic-bedrock-always-thinking': { messages: { ...thinkingAnthropic, envelope: bedrockEnvelope } },
  // Models before adaptive thinking take reasoning as a number of tokens.
  'anthropic-budget': {
    messages: { ...anthropic, reasoning: { ...anthropic.reasoning, style: 'budget' }, prefill: 'native' },
  },
  // Claude after Opus 4.6 at Google's cloud and at `bedrock-mantle`.
  'anthropic-google-fixed-sampling': { messages: { ...fixedAnthropic, envelope: googleEnvelope } },
  'anthropic-mantle-fixed-sampling': { messages: { ...fixedAnthropic, shape: 'none' } },
  // Claude at `rawPredict` of Google (@anthropic-ai/vertex-sdk 1.1.3; docs.cloud.google.com, 2026-11).
  'anthropic-google': { messages: { ...anthropic, envelope: googleEnvelope } },
  // Claude at `bedrock-mantle`, which refuses `output_config.format` (docs.aws.amazon.com/bedrock, 2026-11).
  'anthropic-mantle': { messages: { ...anthropic, shape: 'none' } },
  // Claude at `InvokeModel` of Bedrock (@anthropic-ai/bedrock-sdk 1.1.3; docs.aws.amazon.com/bedrock, 2026-11).
  'anthropic-bedrock': { messages: { ...anthropic, envelope: bedrockEnvelope } },
  'anthropic-bedrock-fixed-sampling': { messages: { ...fixedAnthropic, envelope: bedrockEnvelope } },

  openai: { chat: openaiChat, responses: openaiTools },
  'openai-reasoning': {
    chat: {
      ...openaiChat,
      reasoning: effort,
      hiddenReasoning: 'unless_off',
      accepts: new Set([...openaiChat.accepts!, 'verbosity']),
      // The error for `max_tokens` says "Use 'max_completion_tokens' instead."
      drops: new Set([...fixedSampling, 'max_tokens']),
      // These models accept no `stop`, so the gateway cuts their answers.
      maxStops: 0,
    },
    responses: { ...openaiTools, reasoning: effort, drops: fixedSampling },
  },

  deepseek: {
    chat: {
      maxField: 'max_tokens',
      reasoning: deepseekReasoning,
      hiddenReasoning: 'never',
      reasoningField: 'reasoning_content',
      // In thinking mode, a request with tools gets a 400 if any assistant turn lacks its reasoning text.
      replayThought: { when: 'all', required: true },
      maxStops: 16,
      shape: 'json',
      // The usage has `prompt_cache_hit_tokens` and `prompt_cache_miss_tokens`.
      usageQuirk: 'cache_hit_fields',
      refusals: refusals.deepseek,
    },
    // The error for missing thinking: "The `content[].thinking` in the thinking mode must be passed back to the API."
    messages: {
      reasoning: deepseekReasoning,
      hiddenReasoning: 'never',
      unprovenThought: 'pass',
      refusals: refusals.deepseek,
    },
  },
  xai: {
    chat: {
      // Only the models' names show which of them reason, and no code reads names. Most show none of their reasoning.
      hiddenReasoning: 'unless_off',
      reasoningField: 'reasoning_content',
      // The vendor's reasoning models refuse these fields, and `stop`.
      drops: new Set(['presence_penalty', 'frequency_penalty']),
      maxStops: 0,
      // `completion_tokens` does not include the reasoning tokens.
      usageQuirk: 'excl_reasoning',
      refusals: refusals.xai,
    },
    responses: { drops: new Set(['presence_penalty', 'frequency_penalty']), refusals: refusals.xai },
  },
  mistral: {
    chat: {
      maxField: 'max_tokens',
      hiddenReasoning: 'never',
      // Mistral reports usage without `stream_options`, and answers 422 to unknown fields.
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
      // The errors are "Unexpected role 'system' after role 'assistant'" and "Unexpected role 'user' after role
      // 'tool'".
      operatorInPlace: 'first_only',
      afterResults: 'Done.',
      prefill: 'flag:prefix',
      nullContent: 'empty',
    },
  },
  moonshot: {
    chat: moonshot,
    // Moonshot's error for missing thinking is "thinking is enabled but reasoning_content is missing in assistant tool
    // call message".
    messages: { unprovenThought: 'pass', toolNameStart: 'letter', refusals: refusals.moonshot },
  },
  // Kimi K3 and K3.1 always think, and unlike K2 accept `required` (platform.kimi.ai/docs/guide, 2026-11).
  'moonshot-k3': {
    chat: {
      ...moonshot,
      reasoning: { style: 'effort', levels: ['low', 'high', 'max'], default: 'max', canDisable: false },
      // For the choice of one tool: "tool_choice 'specified' is incompatible with thinking enabled".
      toolChoice: new Set(['auto', 'none', 'required']),
    },
  },
  qwen: { chat: qwen },
  // Qwen3.5 and later think unless a request turns that off (help.aliyun.com/en/model-studio/deep-thinking, 2026-10).
  'qwen-thinking': { chat: { ...qwen, reasoning: { ...qwen.reasoning, default: 'medium' } } },
  // Models of GLM at the provider itself (docs.z.ai, 2026-10).
  zai: {
    chat: {
      // Z.ai ignores `max_completion_tokens` (earendil-works/pi#7143).
      maxField: 'max_tokens',
      hiddenReasoning: 'never',
      reasoningField: 'reasoning_content',
      toolChoice: new Set(['auto']),
      shape: 'json',
    },
  },
  xiaomi: {
    chat: {
      // MiMo thinks unless a request turns that off (mimo.mi.com, deep-thinking, 2026-11). All levels are alike.
      reasoning: { style: 'switch', levels: ['low', 'medium', 'high'], default: 'high', canDisable: true },
      hiddenReasoning: 'never',
      reasoningField: 'reasoning_content',
      // "The reasoning_content in the thinking mode must be passed back to the API." (earendil-works/pi#4602)
      replayThought: { when: 'tool_turns', required: true },
      shape: 'json',
      // The error for null is "`text` is not present" (XiaomiMiMo/MiMo-V2-Flash#8).
      nullContent: 'empty',
    },
  },
  gemini: { chat: gemini },
  // Gemini refuses a conversation with a tool call that has no signature. For a call that another model made, Gemini
  // accepts this signature (https://ai.google.dev/gemini-api/docs/thought-signatures).
  'gemini-3': { chat: { ...gemini, callSignature: 'skip_thought_signature_validator' } },
  openrouter: {
    chat: {
      maxField: 'max_tokens',
      // OpenRouter drops the reasoning fields for models that do not reason.
      reasoning: { style: 'effort', levels: ['minimal', 'low', 'medium', 'high'], canDisable: true },
      // Some models at OpenRouter do not show their reasoning.
      hiddenReasoning: 'unless_off',
      reasoningField: 'reasoning',
      // Kimi refuses a call of the current tool loop if its reasoning is missing (earendil-works/pi#989).
      replayThought: { when: 'tool_turns', required: false },
      accepts: new Set(['top_k', 'verbosity']),
      refusals: refusals.openrouter,
    },
  },

  // Measured with vLLM 0.32 (docs/servers.md). Arguments follow a tool's schema only if `strict` is set.
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
      // The server encrypts no reasoning, and refuses encrypted items.
      unprovenThought: 'pass',
      ...selfHosted,
    },
  },
  // Measured with llama.cpp 0.7 (docs/servers.md). On chat, llama.cpp continues a trailing assistant turn, and does not
  // know a named tool choice.
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
      // llama.cpp treats the choice of a named tool as `any`, and ignores `none`.
      toolChoice: new Set(['auto', 'required']),
      // The server ignores `output_config`.
      shape: 'none',
      // This server's own reasoning has an empty signature, so the default `remove` would drop this reasoning.
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
      // llama.cpp ignores `text.format`.
      shape: 'none',
      developerRole: false,
      hiddenReasoning: 'never',
      requestFaults: unsupportedInput,
      answerNames: anyModel,
      ...selfHosted,
    },
  },
  // Ollama ignores `tool_choice`.
  ollama: {
    chat: { ...modelServer, toolChoice: new Set(['auto']), reasoningField: 'reasoning' },
  },
  // Measured with LiteLLM 1.109 in front of llama.cpp (docs/servers.md). Limits of the server behind LiteLLM are set
  // for each model.
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

/** The names of all profiles that a configuration may use. */
export const profileNames = Object.keys(named) as [string, ...string[]]
