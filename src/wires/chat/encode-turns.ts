import { isBlank, joinTexts, sent, type Text } from '../../bytes/json-source.ts'
import type { Profile } from '../../catalog/profile.ts'
import { writeDataUrl } from '../../inference/data-url.ts'
import { foldOperators } from '../../inference/reminders.ts'
import type {
  DocumentPart,
  ImagePart,
  ModelTurn,
  OperatorTurn,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
  UserPart,
} from '../../inference/request.ts'
import type { Prepared } from '../requests/prepare.ts'
import { failedText, inlineText, refuseFiles, refuseImages } from '../requests/stand-ins.ts'

type ChatMessage = Record<string, unknown>

/** Encodes the conversation as chat messages: the preamble, then each turn. */
export function encodeMessages(prepared: Prepared, profile: Profile): ChatMessage[] {
  const isFirstOnly = profile.operatorInPlace === 'first_only'
  const said: Turn[] = []
  for (const one of prepared.turns) {
    const turn = withoutThoughts(one, prepared, profile)
    if (turn.by === 'operator' || turn.parts.length > 0) said.push(turn)
  }
  const turns = isFirstOnly ? foldOperators(said, () => false) : said
  const messages = encodePreamble(prepared.preamble, profile, isFirstOnly)
  const encode = createTurnEncoder(prepared, profile, messages)
  for (const turn of turns) encode(turn)
  markPrefill(messages, turns, profile)
  return messages
}

/**
 * Encodes the preamble (leading instructions). Each turn becomes a message. If the upstream accepts only one system
 * message, all turns become that message (R-SYS 2).
 */
function encodePreamble(preamble: OperatorTurn[], profile: Profile, isFirstOnly: boolean): ChatMessage[] {
  if (!isFirstOnly || preamble.length < 2) return preamble.map((turn) => encodeOperator(turn, profile))
  const texts = preamble.flatMap((turn) => turn.texts)
  return [encodeOperator({ by: 'operator', level: 'system', texts }, profile)]
}

function encodeOperator(turn: OperatorTurn, profile: Profile): ChatMessage {
  const role = turn.level === 'developer' && profile.developerRole ? 'developer' : 'system'
  return {
    role,
    content: sent(
      joinTexts(
        turn.texts.map(({ text }) => text),
        '\n\n',
      ),
    ),
  }
}

/** Makes the function that encodes one turn. @param messages receives the messages of each turn */
function createTurnEncoder({ choice }: Prepared, profile: Profile, messages: ChatMessage[]): (turn: Turn) => void {
  // If reasoning can be switched off, it is off for a turn without its reasoning.
  const isThoughtless = profile.reasoning.canDisable ? undefined : findThoughtless(profile, choice.tools.length > 0)
  return (turn) => {
    if (turn.by === 'operator') messages.push(encodeOperator(turn, profile))
    else if (turn.by === 'user') encodeUser(turn.parts)
    else messages.push(encodeModel(turn, profile, isThoughtless?.(turn) === true))
  }

  /**
   * Encodes tool results as separate messages. Parts that these messages cannot hold go into a user message after
   * them (R-RES).
   */
  function encodeUser(parts: UserPart[]): void {
    const content: unknown[] = []
    const before = messages.length
    for (const part of parts) if (part.type === 'tool_result') messages.push(encodeResult(part, content))
    for (const part of parts) if (part.type !== 'tool_result') content.push(encodePart(part))
    if (content.length === 0) return
    if (messages.length > before && profile.chat.afterResults !== undefined)
      messages.push({ role: 'assistant', content: profile.chat.afterResults })
    messages.push({ role: 'user', content: joinContent(content, profile) })
  }

  function encodeResult(result: ToolResultPart, attached: unknown[]): ChatMessage {
    const [first] = result.parts
    if (result.parts.length === 1 && first?.type === 'text')
      return { role: 'tool', tool_call_id: result.callId, content: sent(failedText(result, first.text)) }
    const texts: Text[] = []
    const media: unknown[] = []
    for (const part of result.parts) {
      if (part.type === 'text') texts.push(part.text)
      else if (part.type === 'document' && part.text !== undefined) texts.push(inlineText(part))
      else {
        media.push(encodePart(part))
        if (profile.chat.toolImages === 'follow_up')
          texts.push(part.type === 'image' ? '[image attached below]' : '[file attached below]')
      }
    }
    const text = failedText(result, joinTexts(texts, '\n'))
    const message = { role: 'tool', tool_call_id: result.callId }
    if (profile.chat.toolImages === 'native' && media.length > 0) {
      return { ...message, content: [...(text ? [{ type: 'text', text: sent(text) }] : []), ...media] }
    }
    for (const part of media) attached.push(part)
    return { ...message, content: sent(text) }
  }

  function encodePart(part: TextPart | ImagePart | DocumentPart): unknown {
    if (part.type === 'text') return { type: 'text', text: part.text }
    if (part.type === 'image') {
      refuseImages(profile, part)
      return { type: 'image_url', image_url: { url: writeDataUrl(part.mime, part.base64), detail: part.detail } }
    }
    if (part.base64 === undefined) return { type: 'text', text: inlineText(part) }
    refuseFiles(profile, part)
    return {
      type: 'file',
      file: { filename: part.title ?? 'document', file_data: writeDataUrl(part.mime, part.base64) },
    }
  }
}

/**
 * Returns content in the form that the upstream accepts. A single text becomes a string. Several parts stay a list,
 * unless the upstream accepts only strings.
 */
function joinContent(content: unknown[], profile: Profile): unknown {
  const [first] = content as TextPart[]
  if (content.length === 1 && first?.type === 'text') return sent(first.text)
  const texts: Text[] = []
  for (const part of content as TextPart[]) if (part.type === 'text') texts.push(part.text)
  const isAllText = texts.length === content.length
  if (isAllText && profile.chat.stringOnly) return sent(joinTexts(texts, '\n'))
  return (content as TextPart[]).map((part) => (part.type === 'text' ? { ...part, text: sent(part.text) } : part))
}

/**
 * Removes reasoning that the model does not want back (R-HIST). A turn that is empty afterwards becomes no message
 * (R-EMPTY).
 */
function withoutThoughts(turn: Turn, prepared: Prepared, profile: Profile): Turn {
  if (turn.by !== 'model' || !turn.parts.some(({ type }) => type === 'reasoning')) return turn
  const isReplayed = replays(turn, profile)
  const parts = turn.parts.filter((part) => part.type !== 'reasoning' || (isReplayed && part.text !== ''))
  if (parts.length === turn.parts.length) return turn
  prepared.losses.add(prepared.conversationField, 'dropped', 'reasoning of earlier turns')
  return { ...turn, parts }
}

function replays(turn: ModelTurn, profile: Profile): boolean {
  const { when, required } = profile.chat.replayThought
  return when === 'all' || ((when === 'tool_turns' || required) && hasCalls(turn))
}

/** @param isThoughtless whether the upstream requires the turn's reasoning, and that reasoning is lost */
function encodeModel(turn: ModelTurn, profile: Profile, isThoughtless: boolean): ChatMessage {
  let texts: Text[] | undefined
  let thoughts: Text[] | undefined
  let calls: unknown[] | undefined
  for (const part of turn.parts) {
    if (part.type === 'text' || part.type === 'refusal') texts = withOne(texts, part.text)
    else if (part.type === 'tool_call') calls = withOne(calls, encodeCall(part, profile))
    else if (part.text) thoughts = withOne(thoughts, part.text)
  }
  const text = texts ? sent(joinTexts(texts, '')) : ''
  const content = text || (calls && profile.chat.nullContent === 'null' ? null : '')
  if (!replays(turn, profile)) return { role: 'assistant', content, tool_calls: calls }
  const thought = isThoughtless ? ' ' : joinTexts(thoughts ?? [], '\n\n')
  return { role: 'assistant', content, ...encodeThought(thought, profile), tool_calls: calls }
}

/**
 * Adds an element to a list. A list literal with one element needs little memory, while `push` into an empty list
 * reserves seventeen slots.
 */
function withOne<T>(list: T[] | undefined, one: T): T[] {
  if (list === undefined) return [one]
  list.push(one)
  return list
}

function encodeThought(text: Text, profile: Profile): ChatMessage {
  if (text === '') return {}
  const { reasoningField } = profile.chat
  if (reasoningField === 'details') return { reasoning_details: [{ type: 'reasoning.text', text: sent(text) }] }
  return { [reasoningField === 'auto' ? 'reasoning_content' : reasoningField]: sent(text) }
}

function encodeCall(call: ToolCallPart, { chat: { callSignature } }: Profile): unknown {
  const args = isBlank(call.argumentsText) ? '{}' : call.argumentsText
  const encoded = { id: call.callId, type: 'function', function: { name: call.name, arguments: sent(args) } }
  if (callSignature === undefined) return encoded
  return { ...encoded, extra_content: { google: { thought_signature: callSignature } } }
}

/**
 * Returns the test whether the upstream refuses a turn because the turn lacks its reasoning. That can be a tool turn.
 * With `all`, it can be any turn, if the request has tools. Undefined if the upstream refuses no turn.
 */
export function findThoughtless(
  { chat: { replayThought } }: Profile,
  hasTools: boolean,
): ((turn: Turn) => boolean) | undefined {
  if (!replayThought.required) return undefined
  const isOfAnyTurn = hasTools && replayThought.when === 'all'
  return (turn) => {
    if (turn.by !== 'model') return false
    let isWanted = false
    for (const part of turn.parts) {
      if (part.type !== 'reasoning') isWanted ||= isOfAnyTurn || part.type === 'tool_call'
      else if (part.text) return false
    }
    return isWanted
  }
}

function hasCalls(turn: ModelTurn): boolean {
  return turn.parts.some((part) => part.type === 'tool_call')
}

/** Marks a trailing assistant text for continuation, if the upstream has a flag for that (R-PRE). */
function markPrefill(messages: ChatMessage[], turns: Turn[], profile: Profile) {
  const last = turns.at(-1)
  if (last?.by !== 'model' || hasCalls(last)) return
  const message = messages.at(-1)
  if (message && profile.prefill.startsWith('flag:')) message[profile.prefill.slice('flag:'.length)] = true
}
