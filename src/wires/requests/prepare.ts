import { beginBody, writeJson } from '../../bytes/json-source.ts'
import type { Model } from '../../catalog/model.ts'
import type { Profile } from '../../catalog/profile.ts'
import { closeSchema } from '../../inference/closed-schema.ts'
import { renameCallIds } from '../../inference/ids.ts'
import { assignNames, keyOf, type Names } from '../../inference/names.ts'
import { normalise } from '../../inference/normalise.ts'
import type {
  InferenceRequest,
  OperatorText,
  OperatorTurn,
  OutputFormat,
  TextPart,
  Tool,
  ToolChoice,
  ToolName,
  Turn,
} from '../../inference/request.ts'
import type { EncodedRequest } from '../wire.ts'
import { createLosses, type Losses } from './losses.ts'
import { mayHideReasoning } from './reasoning-wish.ts'
import { refuse } from './refusals.ts'

/** A request after the preparations that the encoders of all wires share. */
export type Prepared = {
  /** The name of the client's field that holds the conversation. Losses (see `Loss`) name this field. */
  conversationField: string
  preamble: OperatorTurn[]
  /** The last turn of `preamble`, if the gateway has added lines to it. */
  own: OperatorTurn | undefined
  /** The turns in order (R-PAIR), with the upstream's call ids and tool names. */
  turns: readonly Turn[]
  names: Names
  choice: OfferedTools
  format: OutputFormat
  /** The output cap in tokens, lowered to the model's maximum and raised to the upstream's minimum. */
  outputTokensCap: number
  /**
   * The stop sequences, without empty and repeated ones. The upstream gets `sent`, and the gateway enforces `local`.
   */
  stops: { sent: string[]; local: string[]; all: string[] }
  losses: Losses
}

/** The limits of one wire, whatever the model. */
type WireLimits = {
  /** The field of the cap on output tokens, and the smallest cap that the wire accepts. */
  capField: string
  outputTokensMin: number
  hasJsonMode: boolean
  /** Whether a tool choice may be a list of declared tools (`allowed_tools`). */
  hasAllowedTools: boolean
  /** How many stop sequences the wire accepts. */
  stopsMax: number
  takesBlankStops: boolean
}

/** Prepares a request for the encoders. @throws GatewayError 400 for a tool, choice or format that the model lacks */
export function prepareRequest(request: InferenceRequest, model: Model, limits: WireLimits): Prepared {
  const { profile } = model
  beginBody()
  const losses = createLosses(request.losses)
  refuseLongNames(request)
  refuseDuplicateTools(request)
  const ordered = normalise(request)
  const names = assignNames(ordered, profile)
  const renamed = renameCallIds(ordered.turns, profile.toolIdStyle, names.upstreamOf)
  const { format, line } = resolveFormat(request.format, profile.shape, limits.hasJsonMode, losses)
  const takesAllowed = limits.hasAllowedTools && profile.accepts.has('allowed_tools')
  const choice = resolveChoice(request.tools, request.toolChoice, names, profile, takesAllowed, losses)
  const lines = [line, choice.line].filter((text) => text !== undefined)
  const own: OperatorTurn | undefined =
    lines.length === 0 ? undefined : { by: 'operator', level: 'system', texts: lines.map((text) => ({ text })) }
  return {
    conversationField: request.conversationField,
    preamble: own ? [...ordered.preamble, own] : ordered.preamble,
    own,
    turns: names.restore.size === 0 ? renamed : renamed.map((turn) => withUpstreamNames(turn, names)),
    names,
    choice,
    format,
    outputTokensCap: capOutput(request.outputTokensMax, model, limits, losses),
    stops: splitStops(request.stops, limits, losses),
    losses,
  }
}

/**
 * If a conversation has nothing but operator text, the model has no user turn to answer. The last operator text then
 * becomes a user turn (ruling T18).
 */
export function askSomething(
  { preamble, own }: Pick<Prepared, 'preamble' | 'own'>,
  turns: Turn[],
): { preamble: OperatorTurn[]; turns: Turn[] } {
  const last = preamble.findLast((turn) => turn !== own) ?? own
  if (turns.length > 0 || !last) return { preamble, turns }
  return { preamble: preamble.filter((turn) => turn !== last), turns: [{ by: 'user', parts: last.texts.map(toPart) }] }
}

function toPart({ text }: OperatorText): TextPart {
  return { type: 'text', text }
}

/** The longest tool name. The name is repeated in each tool and each call, so a longer name is refused (R-NAME). */
const nameCharactersMax = 1_024

function refuseLongNames({ tools, turns, conversationField }: InferenceRequest) {
  const isLong = ({ name, namespace = '' }: ToolName) => Math.max(name.length, namespace.length) > nameCharactersMax
  const text = `a tool's name has at most ${nameCharactersMax} characters.`
  for (const tool of tools) if (isLong(tool)) refuse(tool.at ?? 'tools', text, 'tools')
  for (const turn of turns)
    if (turn.by === 'model')
      for (const part of turn.parts) if (part.type === 'tool_call' && isLong(part)) refuse(conversationField, text)
}

function refuseDuplicateTools(request: InferenceRequest) {
  const keys = new Set<string>()
  for (const tool of request.tools) {
    const key = keyOf(tool)
    if (keys.has(key))
      refuse(tool.at ?? 'tools', 'another tool has this name: give each its own, or remove one.', 'tools')
    keys.add(key)
  }
}

function withUpstreamNames(turn: Turn, names: Names): Turn {
  if (turn.by !== 'model') return turn
  return {
    ...turn,
    parts: turn.parts.map((part) => {
      if (part.type !== 'tool_call') return part
      const { namespace: _, ...call } = part
      return { ...call, name: names.upstreamOf(part) }
    }),
  }
}

const jsonLine = 'Answer with one JSON object and nothing else.'

/** Returns the nearest supported form of structured output, or a line of instructions that asks for it (R-JSON). */
function resolveFormat(
  format: OutputFormat,
  shape: Profile['shape'],
  hasJsonMode: boolean,
  losses: Losses,
): { format: OutputFormat; line?: string } {
  if (format.kind === 'text' || (format.kind === 'schema' && shape === 'schema')) return { format }
  const closed = format.kind === 'schema' && shape === 'closed' ? closeSchema(format.schema) : undefined
  if (format.kind === 'schema' && closed) {
    if (closed !== format.schema)
      losses.add('format', 'rewritten', 'what the upstream’s schemas cannot say is said in words')
    return { format: { ...format, schema: closed } }
  }
  const nearest: OutputFormat = hasJsonMode && shape !== 'none' ? { kind: 'json' } : { kind: 'text' }
  if (format.kind === 'json') {
    if (nearest.kind === 'json') return { format }
    losses.add('format', 'rewritten', 'asked for in words')
    return { format: nearest, line: jsonLine }
  }
  losses.add('format', 'rewritten', 'asked for in words')
  const line = `Answer with one JSON object that fits this JSON Schema, and nothing else:\n${format.schema.source}`
  return { format: nearest, line }
}

/**
 * Returns the most output tokens to request from the upstream (R-MAX, ruling T17). Without a cap, the model may write
 * up to its maximum, also if the upstream takes no cap.
 */
function capOutput(wanted: number | undefined, model: Model, limits: WireLimits, losses: Losses): number {
  const requested = model.profile.drops.has(limits.capField) ? undefined : wanted
  const lowered = Math.min(requested ?? model.outputTokensMax, model.outputTokensMax)
  const cap = Math.max(lowered, limits.outputTokensMin, model.profile.minOutput)
  if (requested !== undefined && cap !== requested) {
    losses.add('max_output', 'clamped', cap < requested ? 'above the model’s maximum' : 'below the upstream’s floor')
  }
  return cap
}

/** Splits the stop sequences into those for the upstream and the rest, which the gateway enforces (R-STOP). */
function splitStops(wanted: readonly string[], limits: WireLimits, losses: Losses): Prepared['stops'] {
  const all = [...new Set(wanted)].filter((stop) => stop !== '')
  if (wanted.includes('')) losses.add('stop', 'dropped', 'empty')
  const sendable = all.filter((stop) => limits.takesBlankStops || stop.trim() !== '')
  const sent = new Set(sendable.slice(0, limits.stopsMax))
  return { sent: [...sent], local: all.filter((stop) => !sent.has(stop)), all }
}

/**
 * Builds the body, without fields that the upstream rejects according to the profile, and collects the facts for
 * decoding the answer.
 * @param conversation the upstream's field for the conversation. This field, the model's name and `stream` are never
 * removed.
 */
export function finishRequest(
  body: Record<string, unknown>,
  conversation: string,
  { names, choice, stops, outputTokensCap, losses }: Prepared,
  profile: Profile,
): EncodedRequest {
  const required = ['model', conversation, 'stream']
  for (const field of profile.drops) {
    if (body[field] === undefined || required.includes(field)) continue
    delete body[field]
    // The loss is listed under the upstream's name of the field.
    losses.add(field, 'dropped', 'the model does not take it')
  }
  return {
    body: writeJson(body),
    names: names.restore,
    toolNames: new Set(choice.tools.map(({ name }) => name)),
    localStops: stops.local,
    stops: stops.all,
    outputTokensCap,
    mayHideReasoning: mayHideReasoning((field) => body[field], profile),
    losses: losses.list,
  }
}

/** The tools declared to the upstream, and the choice among them. All names are the upstream's. */
export type OfferedTools = {
  tools: readonly Tool[]
  mode: ToolChoice['mode']
  name?: string
  /** The only tools that may be called. It is set only if the upstream accepts such a list. */
  allowed?: string[]
  parallel?: boolean
  /** Tells the model in words that it must call a tool. Set if no field of the request can force a call (ruling Y6). */
  line?: string
}

/**
 * Decides which tools and which choice to send (R-CHOICE). An unsupported mode is replaced by an equivalent mode, or
 * else by an instruction in words (ruling Y6).
 * @throws GatewayError 400 for a choice of tools that are not declared
 */
function resolveChoice(
  tools: readonly Tool[],
  wish: ToolChoice,
  names: Names,
  profile: Pick<Profile, 'toolChoice' | 'drops'>,
  takesAllowed: boolean,
  losses: Losses,
): OfferedTools {
  if (tools.length === 0) {
    // Upstreams refuse a tool choice if there are no tools.
    if (wish.mode !== 'default') losses.add('tool_choice', 'dropped', 'there are no tools')
    if (wish.parallel !== undefined) losses.add('parallel_tool_calls', 'dropped', 'there are no tools')
    return { tools: [], mode: 'default' }
  }
  const declared = names.restore.size === 0 ? tools : tools.map((tool) => ({ ...tool, name: names.upstreamOf(tool) }))
  let byName: Map<string, Tool[]> | undefined
  let keys: Set<string> | undefined
  const upstreamOf = (wanted: ToolName) => {
    if (wanted.namespace) {
      keys ??= new Set(tools.map(keyOf))
      return keys.has(keyOf(wanted)) ? names.upstreamOf(wanted) : undefined
    }
    byName ??= Map.groupBy(tools, (tool) => tool.name)
    return onlyOne(byName.get(wanted.name) ?? [], names)
  }
  const parallel = wish.parallel === undefined ? {} : { parallel: wish.parallel }
  const takes: Profile['toolChoice'] = profile.drops.has('tool_choice') ? new Set() : profile.toolChoice
  const auto = takes.has('auto') ? 'auto' : 'default'
  if (wish.only) return { ...chooseSubset(wish, upstreamOf), ...parallel }
  switch (wish.mode) {
    case 'named': {
      const name = upstreamOf(wish.tool ?? { name: '' })
      if (name === undefined)
        refuse('tool_choice', 'it names a tool that is not declared: declare it in tools, or remove it.')
      return { ...force(new Set([name]), takes.has('named')), ...parallel }
    }
    case 'none':
      if (takes.has('none')) return { tools: declared, mode: 'none', ...parallel }
      return { tools: [], mode: 'default' }
    case 'required':
      return { ...force(new Set(declared.map(({ name }) => name))), ...parallel }
    case 'auto':
      return { tools: declared, mode: auto, ...parallel }
    case 'default':
      return { tools: declared, mode: 'default', ...parallel }
  }

  /**
   * Makes the model call one of the wanted tools (ruling Y6). For a single wanted tool, the modes `required` and
   * `named` have the same effect.
   */
  function force(wanted: ReadonlySet<string>, prefersName = false): OfferedTools {
    const only = declared.filter(({ name }) => wanted.has(name))
    if (takes.has('required') && !prefersName) return { tools: only, mode: 'required' }
    if (takes.has('named') && only.length === 1) return { tools: declared, mode: 'named', name: only[0]!.name }
    losses.add('tool_choice', 'rewritten', 'asked for in words')
    const which = only.length === 1 ? `the tool ${only[0]!.name}` : 'one of the tools'
    return { tools: only, mode: auto, line: `Answer by calling ${which}.` }
  }

  function chooseSubset(choice: ToolChoice, find: (tool: ToolName) => string | undefined): OfferedTools {
    const wanted = new Map((choice.only ?? []).map((tool) => [keyOf(tool), tool]))
    const allowed = new Set([...wanted.values()].map(find).filter((name) => name !== undefined))
    if (allowed.size === 0)
      refuse('tool_choice', 'it allows no tool that is declared: declare one of them in tools, or remove it.')
    const offered: OfferedTools =
      choice.mode === 'required'
        ? force(allowed)
        : { tools: declared.filter((tool) => allowed.has(tool.name)), mode: auto }
    if (offered.mode === 'named' || !takesAllowed) return offered
    return {
      ...offered,
      tools: declared,
      mode: offered.mode === 'required' ? 'required' : 'auto',
      allowed: [...allowed],
    }
  }
}

/**
 * Returns the upstream's name of a tool that the client names without a namespace. Of the tools with that name, the
 * tool without a namespace is preferred. Otherwise there must be only one such tool (R-GROUP).
 */
function onlyOne(tools: readonly Tool[], names: Names): string | undefined {
  const tool = tools.find((candidate) => !candidate.namespace) ?? tools[0]
  if (!tool) return undefined
  if (tool.namespace && tools.length > 1) {
    refuse('tool_choice', 'it names a tool that several namespaces have: send each its own name.')
  }
  return names.upstreamOf(tool)
}
