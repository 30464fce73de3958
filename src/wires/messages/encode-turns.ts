import type { JsonObject } from '../../bytes/json.ts'
import { isBlank, sent, verbatim } from '../../bytes/json-source.ts'
import type { Profile } from '../../catalog/profile.ts'
import { objectOfArguments } from '../../inference/raw-arguments.ts'
import { foldOperators, mergeNeighbours } from '../../inference/reminders.ts'
import type {
  DocumentPart,
  ImagePart,
  ModelPart,
  TextPart,
  ToolResultPart,
  Turn,
  UserPart,
} from '../../inference/request.ts'
import { askSomething, type Prepared } from '../requests/prepare.ts'
import { refuseFiles, refuseImages } from '../requests/stand-ins.ts'

export type EncodedMessage = { role: 'user' | 'assistant' | 'system'; content: JsonObject[] }

/**
 * Encodes `system` and `messages`. Turns alternate, results come first in their turn (R-PAIR), and the model's blocks
 * keep their order (ruling Y2).
 */
export function encodeConversation(
  prepared: Prepared,
  profile: Profile,
): { system: JsonObject[]; messages: EncodedMessage[] } {
  const sayable = mergeNeighbours(
    prepared.turns.map((turn) => withoutUnsayable(turn, prepared, profile)).filter(isSomething),
  )
    .map((turn) => withoutLastThoughts(turn, prepared))
    .filter(isSomething)
  // Empty texts are removed by now. If only operator text is left, the next step makes a user turn of it (ruling
  // T21).
  const { preamble, turns: said } = askSomething(prepared, sayable)
  const inPlace = foldOperators(said, (before, after) => {
    if (profile.operatorInPlace === 'any') return true
    return profile.operatorInPlace === 'message_rule' && before?.by === 'user' && after?.by !== 'user'
  })
  const merged = endWithUser(beginWithUser(trimPrefill(mergeNeighbours(inPlace)), prepared, profile), prepared, profile)
  return {
    system: preamble.flatMap((turn) => turn.texts.map((text) => ({ type: 'text', text: sent(text.text) }))),
    messages: merged.map((turn) => encodeTurn(turn, prepared, profile)),
  }
}

/**
 * Removes parts that this wire refuses: empty texts, blank texts of the model, and thinking that its model has not
 * signed (R-EMPTY, R-HIST). Such thinking is kept for a provider that checks no signatures.
 */
function withoutUnsayable(turn: Turn, prepared: Prepared, { unprovenThought }: Profile): Turn {
  if (turn.by === 'operator') return turn
  const parts: readonly (UserPart | ModelPart)[] = turn.parts
  const isUser = turn.by === 'user'
  const isKept = (part: UserPart | ModelPart) =>
    part.type === 'reasoning'
      ? part.sealed !== undefined || (unprovenThought === 'pass' && part.text !== '')
      : isSayable(part, isUser)
  if (parts.every(isKept)) return turn
  if (unprovenThought === 'remove' && parts.some((part) => part.type === 'reasoning' && !part.sealed))
    prepared.losses.add(prepared.conversationField, 'dropped', 'reasoning without the proof its model wants')
  return { ...turn, parts: parts.filter(isKept) } as Turn
}

function isSayable(part: UserPart | ModelPart, isUser: boolean): boolean {
  if (part.type !== 'text' && part.type !== 'refusal') return true
  return isUser ? part.text !== '' : !isBlank(part.text)
}

function isSomething(turn: Turn): boolean {
  return turn.by === 'operator' || turn.parts.length > 0
}

/**
 * Removes thinking at the end of a turn, which upstreams refuse: "The final block in an assistant message cannot be
 * `thinking`". A turn that has only thinking becomes empty, and the caller drops it.
 */
function withoutLastThoughts(turn: Turn, prepared: Prepared): Turn {
  if (turn.by !== 'model') return turn
  const end = turn.parts.findLastIndex((part) => part.type !== 'reasoning') + 1
  if (end === turn.parts.length) return turn
  prepared.losses.add(prepared.conversationField, 'dropped', 'reasoning with nothing behind it, which the wire refuses')
  return { ...turn, parts: turn.parts.slice(0, end) }
}

/**
 * The user turn put before the first turn. It is constant, like everything at the head of a conversation (ruling T8).
 */
const opening: Turn = { by: 'user', parts: [{ type: 'text', text: '.' }] }
const goingOn: Turn = { by: 'user', parts: [{ type: 'text', text: 'Continue.' }] }

/**
 * Adds a user turn if the conversation begins with the assistant but must begin with the user. It begins so after a
 * greeting, or if its history was truncated (ruling T23).
 */
function beginWithUser(turns: Turn[], prepared: Prepared, profile: Profile): Turn[] {
  if (profile.messages.assistantFirst || turns[0]?.by !== 'model') return turns
  prepared.losses.add(prepared.conversationField, 'rewritten', 'a user turn before the first, which is the assistant')
  return [opening, ...turns]
}

/**
 * Adds a user turn that asks the model to go on, for models that refuse an assistant turn at the end. With a schema for
 * the answer, the wire refuses such a turn (https://platform.claude.com/docs/en/build-with-claude/structured-outputs).
 */
function endWithUser(turns: Turn[], prepared: Prepared, profile: Profile): Turn[] {
  const last = turns.at(-1)
  const isRefused = profile.prefill === 'none' || prepared.format.kind === 'schema'
  if (!isRefused || last?.by !== 'model') return turns
  // Calls without results are sent unchanged (ruling T13).
  if (last.parts.some((part) => part.type === 'tool_call')) return turns
  prepared.losses.add(prepared.conversationField, 'rewritten', 'a user turn behind the last, which is the assistant')
  return [...turns, goingOn]
}

/**
 * Removes white space at the end of the text of a trailing assistant turn, which the model continues. Upstreams refuse
 * such white space (R-PRE).
 */
function trimPrefill(turns: Turn[]): Turn[] {
  const last = turns.at(-1)
  const part = last?.by === 'model' ? last.parts.at(-1) : undefined
  if (last?.by !== 'model' || (part?.type !== 'text' && part?.type !== 'refusal')) return turns
  const text = part.text.toString().trimEnd()
  const parts: ModelPart[] = [...last.parts.slice(0, -1), ...(text ? [{ ...part, text }] : [])]
  return parts.length > 0 ? [...turns.slice(0, -1), { ...last, parts }] : turns.slice(0, -1)
}

function encodeTurn(turn: Turn, prepared: Prepared, profile: Profile): EncodedMessage {
  if (turn.by === 'operator') {
    return { role: 'system', content: turn.texts.map((text) => ({ type: 'text', text: sent(text.text) })) }
  }
  if (turn.by === 'user') return { role: 'user', content: turn.parts.map(encodeUserPart) }
  // Parts keep their order. The vendor checks where thinking stands, and accepts text after calls (ruling Y2).
  return { role: 'assistant', content: turn.parts.map(encodeModelPart) }

  function encodeUserPart(part: UserPart): JsonObject {
    return part.type === 'tool_result' ? encodeResult(part) : encodePart(part)
  }

  function encodeResult(result: ToolResultPart): JsonObject {
    const [first] = result.parts
    const isOneText = result.parts.length === 1 && first?.type === 'text'
    const content = isOneText ? sent(first.text) : result.parts.map(encodePart)
    return {
      type: 'tool_result',
      tool_use_id: result.callId,
      content: content === '' || result.parts.length === 0 ? undefined : content,
      is_error: result.isError || undefined,
    }
  }

  function encodePart(part: TextPart | ImagePart | DocumentPart): JsonObject {
    if (part.type === 'text') return { type: 'text', text: sent(part.text) }
    if (part.type === 'image') {
      refuseImages(profile, part)
      if (part.detail !== undefined) prepared.losses.add('image detail', 'dropped', 'the wire has no such field')
      return { type: 'image', source: base64Source(part.mime, part.base64) }
    }
    const source =
      part.base64 === undefined
        ? { type: 'text', media_type: 'text/plain', data: part.text ?? '' }
        : base64Source(part.mime, part.base64)
    if (part.base64 !== undefined) refuseFiles(profile, part)
    return { type: 'document', source, title: part.title }
  }
}

function base64Source(mime: string, base64: string): JsonObject {
  return { type: 'base64', media_type: mime, data: base64 }
}

function encodeModelPart(part: ModelPart): JsonObject {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { type: 'text', text: sent(part.text) }
    case 'tool_call':
      return {
        type: 'tool_use',
        id: part.callId,
        name: part.name,
        input: verbatim({ source: objectOfArguments(part.argumentsText) }),
      }
    case 'reasoning': {
      const data = part.sealed?.data ?? ''
      if (part.sealed?.kind === 'redacted') return { type: 'redacted_thinking', data }
      return { type: 'thinking', thinking: sent(part.text), signature: data }
    }
  }
}
