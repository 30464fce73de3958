import type {
  DocumentPart,
  ImagePart,
  ModelPart,
  OperatorText,
  OperatorTurn,
  TextPart,
  ToolCallPart,
  Turn,
} from '../../inference/request.ts'
import { readFile, readImageUrl } from '../media.ts'
import {
  type Body,
  isAbsent,
  type Json,
  type Losses,
  optional,
  readArguments,
  readArray,
  readObject,
  readString,
  refuse,
} from '../reading.ts'

const param = 'messages'

/** The conversation, message by message; leading system and developer messages are preamble (R-SYS 1). */
export function readTurns(body: Body, losses: Losses): { preamble: OperatorTurn[]; turns: Turn[] } {
  const preamble: OperatorTurn[] = []
  const turns: Turn[] = []
  for (const entry of readArray(body.fields['messages'], param)) {
    const message = readObject(entry, param, 'each entry')
    if (!isAbsent(message['name'])) losses.add('messages.name', 'dropped', 'the wire has no such field')
    const { role } = message
    switch (role) {
      case 'system':
      case 'developer': {
        const turn: OperatorTurn = { by: 'operator', level: role, texts: readTexts(message['content']) }
        if (turns.length > 0) turns.push(turn)
        else preamble.push(turn)
        break
      }
      case 'user':
        turns.push({ by: 'user', parts: readParts(message['content']).map(readUserPart) })
        break
      case 'assistant':
        turns.push({ by: 'model', parts: readModelParts(message, body, losses) })
        break
      case 'tool':
        turns.push({
          by: 'user',
          parts: [
            {
              type: 'tool_result',
              callId: readString(message['tool_call_id'], param, '"tool_call_id"'),
              parts: readResult(message['content']),
              isError: false,
            },
          ],
        })
        break
      default:
        refuse(param, '"messages": "role" must be one of system, developer, user, assistant, tool.')
    }
  }
  return { preamble, turns }
}

function readTexts(content: unknown): OperatorText[] {
  return readParts(content).map((part) => {
    if (part['type'] !== 'text') refuse(param, '"messages": system and developer messages have text parts only.')
    return { text: readString(part['text'], param, 'the text of a part') }
  })
}

function readParts(content: unknown): Json[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return readArray(content, param, '"content", if no string,').map((part) => readObject(part, param, 'each part'))
}

function readUserPart(part: Json): TextPart | ImagePart | DocumentPart {
  switch (part['type']) {
    case 'text':
      return { type: 'text', text: readString(part['text'], param, 'the text of a part') }
    case 'image_url': {
      const image = readObject(part['image_url'], param, '"image_url"')
      return readImageUrl(image['url'], param, image['detail'])
    }
    case 'file':
      return readFile(readObject(part['file'], param, '"file"'), param)
  }
  refuse(param, '"messages": a user part has a type that this model cannot be given; text, images and files can.')
}

function readResult(content: unknown): (TextPart | ImagePart | DocumentPart)[] {
  if (isAbsent(content)) return []
  return readParts(content)
    .map(readUserPart)
    .filter((part) => part.type !== 'text' || part.text !== '')
}

function readModelParts(message: Json, body: Body, losses: Losses): ModelPart[] {
  if (!isAbsent(message['function_call'])) refuse(param, 'Legacy function calls are not translated: use "tool_calls".')
  if (!isAbsent(message['audio'])) refuse(param, '"messages": this model has no audio: send its text instead.')
  const parts: ModelPart[] = []
  const thought =
    optional(readString, message['reasoning_content'], param, '"reasoning_content"') ??
    optional(readString, message['reasoning'], param, '"reasoning"')
  if (thought) parts.push({ type: 'reasoning', text: thought })
  for (const part of isAbsent(message['content']) ? [] : readParts(message['content'])) {
    if (part['type'] === 'text')
      parts.push({ type: 'text', text: readString(part['text'], param, 'the text of a part') })
    else if (part['type'] === 'refusal')
      parts.push({ type: 'refusal', text: readString(part['refusal'], param, '"refusal"') })
    else losses.add(param, 'dropped', 'an assistant part of a kind that only its provider knows')
  }
  const refusal = optional(readString, message['refusal'], param, '"refusal"')
  if (refusal) parts.push({ type: 'refusal', text: refusal })
  for (const call of optional(readArray, message['tool_calls'], param, '"tool_calls"') ?? []) {
    parts.push(readCall(readObject(call, param, 'each tool call'), body))
  }
  return parts
}

function readCall(call: Json, body: Body): ToolCallPart {
  if (!isAbsent(call['type']) && call['type'] !== 'function') {
    refuse(param, '"messages": this model has no custom tools, so a call of one cannot be told.')
  }
  const called = readObject(call['function'], param, '"function" of a tool call')
  return {
    type: 'tool_call',
    callId: readString(call['id'], param, '"id" of a tool call'),
    name: readString(called['name'], param, '"name" of a tool call'),
    argumentsText: readArguments(body, called['arguments'], param),
  }
}
