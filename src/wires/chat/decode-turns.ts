import { splitPreamble } from '../../inference/normalise.ts'
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
import type { Losses } from '../requests/losses.ts'
import { readFile, readImageUrl } from '../requests/media.ts'
import {
  type Body,
  isAbsent,
  type Json,
  optional,
  optionalEach,
  optionalText,
  readArguments,
  readContent,
  readEach,
  readObject,
  readString,
  readText,
} from '../requests/read-value.ts'
import { refuse, wrongType } from '../requests/refusals.ts'

const field = 'messages'

/** Reads the conversation, message by message. Leading system and developer messages are the preamble (R-SYS 1). */
export function readTurns(body: Body, losses: Losses): { preamble: OperatorTurn[]; turns: Turn[] } {
  return splitPreamble(readEach(body.fields[field], field, readMessage))

  function readMessage(entry: unknown, at: string): Turn {
    const message = readObject(entry, at)
    if (!isAbsent(message['name'])) losses.add('messages.name', 'dropped', 'the wire has no such field')
    const { role, content } = message
    const place = `${at}.content`
    switch (role) {
      case 'system':
      case 'developer':
        return { by: 'operator', level: role, texts: readContent(body, content, place, 'text', readOperatorText) }
      case 'user':
        return { by: 'user', parts: readContent(body, content, place, 'text', readUserPart) }
      case 'assistant':
        return { by: 'model', parts: readModelParts(message, at, body, losses) }
      case 'tool': {
        const callId = readString(message['tool_call_id'], `${at}.tool_call_id`)
        const said = isAbsent(content) ? [] : readContent(body, content, place, 'text', readUserPart)
        const parts = said.every(saysSomething) ? said : said.filter(saysSomething)
        return { by: 'user', parts: [{ type: 'tool_result', callId, parts, isError: false }] }
      }
    }
    throw wrongType(`${at}.role`, 'one of system, developer, user, assistant, tool')
  }
}

function readOperatorText(part: Json, at: string, body: Body): OperatorText {
  if (part['type'] !== 'text') refuse(at, 'system and developer messages have text parts only.')
  return { text: readText(body, part['text'], `${at}.text`) }
}

function readUserPart(part: Json, at: string, body: Body): TextPart | ImagePart | DocumentPart {
  switch (part['type']) {
    case 'text':
      return { type: 'text', text: readText(body, part['text'], `${at}.text`) }
    case 'image_url': {
      const place = `${at}.image_url`
      const image = readObject(part['image_url'], place)
      const detail = optional(readString, image['detail'], `${place}.detail`)
      return readImageUrl(image['url'], `${place}.url`, at, detail)
    }
    case 'file':
      return readFile(readObject(part['file'], `${at}.file`), `${at}.file`, at)
    case 'input_audio':
      refuse(at, 'this model cannot be given a part of type input_audio; text, images and files can be sent.')
  }
  refuse(at, 'this model cannot be given a part of this type; text, images and files can be sent.')
}

function saysSomething(part: TextPart | ImagePart | DocumentPart): boolean {
  return part.type !== 'text' || part.text !== ''
}

function readModelParts(message: Json, at: string, body: Body, losses: Losses): ModelPart[] {
  if (!isAbsent(message['function_call'])) {
    refuse(`${at}.function_call`, 'legacy function calls are not translated: send tool_calls.')
  }
  if (!isAbsent(message['audio'])) refuse(`${at}.audio`, 'this model has no audio: send its text instead.')
  const parts: ModelPart[] = []
  const thought =
    optionalText(body, message['reasoning_content'], `${at}.reasoning_content`) ??
    optionalText(body, message['reasoning'], `${at}.reasoning`)
  const details = message['reasoning_details']
  if (thought) parts.push({ type: 'reasoning', text: thought })
  else if (Array.isArray(details) && details.length > 0) losses.add(field, 'dropped', 'reasoning details')
  if (!isAbsent(message['content'])) {
    for (const part of readContent(body, message['content'], `${at}.content`, 'text', readModelPart)) {
      if (part) parts.push(part)
      else losses.add(field, 'dropped', 'an assistant part of a kind that only its provider knows')
    }
  }
  const refusal = optional(readString, message['refusal'], `${at}.refusal`)
  if (refusal) parts.push({ type: 'refusal', text: refusal })
  const calls = optionalEach(message['tool_calls'], `${at}.tool_calls`, (call, place) => readCall(call, place, body))
  // Fast path: most turns consist of calls only, so their list is used as it is.
  if (parts.length === 0) return calls
  for (const call of calls) parts.push(call)
  return parts
}

function readModelPart(part: Json, at: string, body: Body): ModelPart | undefined {
  if (part['type'] === 'text') return { type: 'text', text: readText(body, part['text'], `${at}.text`) }
  if (part['type'] === 'refusal') return { type: 'refusal', text: readString(part['refusal'], `${at}.refusal`) }
  return undefined
}

function readCall(entry: unknown, at: string, body: Body): ToolCallPart {
  const call = readObject(entry, at)
  if (!isAbsent(call['type']) && call['type'] !== 'function') {
    refuse(at, 'this model has no custom tools, so a call of one cannot be told: send function calls only.')
  }
  const place = `${at}.function`
  const called = readObject(call['function'], place)
  return {
    type: 'tool_call',
    callId: readString(call['id'], `${at}.id`),
    name: readString(called['name'], `${place}.name`),
    argumentsText: readArguments(body, called['arguments'], `${place}.arguments`),
  }
}
