import { beginBody, writeJson } from '../../bytes/json-source.ts'
import type { Model } from '../../catalog/model.ts'
import type { Profile } from '../../catalog/profile.ts'
import { closeSchema } from '../../inference/closed-schema.ts'
import { renameCallIds } from '../../inference/ids.ts'
import { assignNames, keyOf, type Names, type ToolName } from '../../inference/names.ts'
import { normalise } from '../../inference/normalise.ts'
import type { InferenceRequest, OperatorTurn, OutputFormat, Turn } from '../../inference/request.ts'
import type { EncodedRequest } from '../wire.ts'
import { type OfferedTools, resolveChoice } from './choice.ts'
import { createLosses, type Losses } from './losses.ts'
import { mayHideReasoning } from './reasoning-wish.ts'
import { refuse } from './refusals.ts'

/** A request with all preparations common to the encoders of every wire. */
export type Prepared = {
  /** The client's field that holds the conversation. Lists of changed fields, called losses, name it. */
  conversationField: string
  preamble: OperatorTurn[]
  /** The last turn of the preamble (the leading operator turns), if the gateway has added lines to it. */
  own: OperatorTurn | undefined
  /** The turns in order (R-PAIR), with the upstream's call ids and tool names. */
  turns: readonly Turn[]
  names: Names
  choice: OfferedTools
  format: OutputFormat
  /** The output cap in tokens, lowered to the model's maximum and raised to the upstream's minimum. */
  outputTokensCap: number
  /** The stop sequences without empty ones and repetitions: those sent, those that we enforce, and all of them. */
  stops: { sent: string[]; local: string[]; all: string[] }
  losses: Losses
}

/** The limits of one wire, whatever the model. */
type WireLimits = {
  /** The smallest cap that the wire accepts, in tokens. */
  outputTokensMin: number
  hasJsonMode: boolean
  /** How many stop sequences the wire accepts. */
  stopsMax: number
  takesBlankStops: boolean
}

/** @throws GatewayError 400 for a tool, a choice or a format that the model cannot support */
export function prepareRequest(request: InferenceRequest, model: Model, limits: WireLimits): Prepared {
  const { profile } = model
  beginBody()
  const losses = createLosses(request.losses)
  refuseLongNames(request)
  refuseDuplicateTools(request)
  const ordered = normalise(request)
  const names = assignNames(ordered, profile.toolNameMax)
  const renamed = renameCallIds(ordered.turns, profile.toolIdStyle, names.upstreamOf)
  const { format, line } = resolveFormat(request.format, profile.shape, limits.hasJsonMode, losses)
  const choice = resolveChoice(request.tools, request.toolChoice, names, profile, losses)
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
    outputTokensCap: capOutput(request.outputTokensMax, model, limits.outputTokensMin, losses),
    stops: splitStops(request.stops, limits, losses),
    losses,
  }
}

/** The longest tool name. The name is repeated in each tool and each call, so a longer one is refused (R-NAME). */
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

/** The output cap to send (R-MAX, ruling T17). */
function capOutput(requested: number | undefined, model: Model, wireMin: number, losses: Losses): number {
  const lowered = Math.min(requested ?? model.outputTokensMax, model.outputTokensMax)
  const cap = Math.max(lowered, wireMin, model.profile.minOutput)
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
