import type { ReasoningLevel } from '../inference/reasoning.ts'
import type { Refusal } from './refusals.ts'

export { type ReasoningLevel, reasoningLevels } from '../inference/reasoning.ts'

/**
 * The fields that an upstream's model accepts, and its quirks. Every decision that depends on the model reads this table; none
 * reads its name. The defaults suit a plain, complete implementation of the model's wire.
 */
export type Profile = {
  /** chat: which field caps the output. */
  maxField: 'max_completion_tokens' | 'max_tokens'
  /** The smallest cap the upstream takes; a smaller one is raised to it (ruling T17). */
  minOutput: number
  /** How the model takes a reasoning wish. */
  reasoning: {
    style: 'none' | 'effort' | 'budget' | 'adaptive' | 'switch' | 'toggle'
    levels: readonly ReasoningLevel[]
    /** The level that it uses if none is asked for. */
    default?: ReasoningLevel
    canDisable: boolean
    /** style `toggle`: the boolean field, e.g. `enable_thinking`. */
    field?: string
  }
  /**
   * When it may reason without showing all of it in its stream, so that a cut answer cannot be estimated from its text
   * (ruling C12). A summary is not all of it. `asked`: where the request asks for reasoning; `unless_off`: where it does
   * not switch it off.
   */
  hiddenReasoning: 'never' | 'asked' | 'unless_off'
  /** chat: the field its reasoning text is in, and the one replayed reasoning goes to. */
  reasoningField: 'auto' | 'reasoning_content' | 'reasoning' | 'details'
  replayThought: { when: 'never' | 'tool_turns' | 'all'; required: boolean }
  /** Reasoning inside the text, between tags. */
  thinkTags?: { open: string; close: string; implicitOpen: boolean }
  /** Request fields the upstream rejects. */
  drops: ReadonlySet<string>
  /** Request fields beyond the plain wire that it takes. */
  accepts: ReadonlySet<string>
  /**
   * chat, responses: what it takes as a tool's schema. `plain`: the root is no choice, and says its properties, as lists do their items.
   */
  toolSchemas: 'any' | 'plain'
  toolChoice: ReadonlySet<'auto' | 'none' | 'required' | 'named'>
  toolIdStyle: 'free' | 're64' | 'len40' | 'alnum9' | 'fn_index'
  toolNameMax: number
  /** chat, messages: how many stop sequences it takes; the rest is enforced by us. */
  maxStops: number
  operatorInPlace: 'any' | 'first_only' | 'message_rule'
  /** False: `developer` is sent as `system`. */
  developerRole: boolean
  images: boolean
  files: boolean
  toolImages: 'native' | 'follow_up'
  /** Structured output it can be held to; `closed`: schemas of the subset of inference/closed-schema.ts. */
  shape: 'schema' | 'closed' | 'json' | 'none'
  /** chat: the words of an assistant turn that stands between results of tools and a user turn, where those may not be neighbours. */
  afterResults?: string
  /** A trailing assistant turn is continued: natively, with a flag field, or not. */
  prefill: 'none' | 'native' | `flag:${string}`
  nullContent: 'null' | 'empty'
  /**
   * chat: stands for the signature that the model has given each of its calls, wants back, and no other wire has room for. It goes
   * where Gemini's chat-compatible endpoint has them, into `extra_content` of the call.
   */
  callSignature?: string
  /**
   * messages, responses, on the same wire: what becomes of thinking in the conversation that has no signature, and of reasoning without
   * `encrypted_content`. `remove`: the provider proves its own and refuses others (ruling P1); `pass`: it proves nothing, and reads
   * or even wants them.
   */
  unprovenThought: 'remove' | 'pass'
  /** chat: several text parts are joined to one string. */
  stringOnly: boolean
  /** messages: cache marks set by us; `auto` where the conversation is likely to go on (ruling T5). */
  autoCache: 'off' | 'on_key' | 'auto' | 'always'
  /** messages: the same on the same wire, where the client sets no mark itself. */
  autoCacheSameWire: boolean
  usageQuirk: 'none' | 'cache_hit_fields' | 'excl_reasoning' | 'top_level_cached' | 'in_choice'
  /** Rejects fields its wire does not define (ruling P5). */
  strictFields: boolean
  /** messages: a conversation may begin with the assistant; else a small user turn is put before it (ruling T23). */
  assistantFirst: boolean
  /** messages: at most one of `temperature` and `top_p`. */
  oneSamplingField: boolean
  /** Whether parts of a same-wire request pass that make the provider fetch an address, or look up stored files (ruling U12). */
  remoteMedia: 'pass' | 'refuse'
  storedFiles: 'pass' | 'refuse'
  /** Charges of its provider beside plain input and output (ruling C11), reported if an entry has no price for them. */
  charges: readonly Charge[]
  /** messages: betas of the client's that raise the price, an asterisk for any ending (ruling C7). */
  costlyBetas: readonly string[]
  /**
   * Fields beyond `catalog/routing-fields.ts` that choose another model, provider, host, key or price (ruling Y13). One with a dot
   * is a member of an object. In lower case, as the next.
   */
  routingFields: readonly string[]
  /** Objects whose members the upstream reads as if they stood at the top level (ruling Y13). */
  routingContainers: readonly string[]
  /** Further names under which the model answers, an asterisk for any letters (ruling Y13). */
  answerNames: readonly string[]
  /** The provider's refusals whose status does not say what they are about; the first row that fits counts (ruling U2). */
  refusals: readonly Refusal[]
  /** Beside those, by the operator: parts of a 4xx's text that tell of the provider account's own trouble. */
  accountFaults: readonly string[]
  /** Parts of a 5xx's text that tell of a fault of the request, e.g. an image for a model of text (ruling U8). */
  requestFaults: readonly string[]
  /** Ask for a stream even when the client wants JSON, and fold it. */
  preferStream: boolean
}

/** Writes into its cache, the same for an hour, and calls of its own tools, by the names of their prices. */
export const chargeNames = ['cache_write', 'cache_write_1h', 'calls'] as const
export type Charge = (typeof chargeNames)[number]
