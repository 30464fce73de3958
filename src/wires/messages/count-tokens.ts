import { estimateTextTokens } from '../../inference/estimate.ts'
import { estimateMediaTokens, imageTokensMax, pageTokens } from '../../inference/estimate-media.ts'
import { isAbsent, type Json, readArray, readObject, readString, refuse } from '../reading.ts'

/*
 * The answer to /v1/messages/count_tokens (spec 4.2): the caller's text by the estimate of tokens, images and documents
 * by their own rule, and a little for each message. What a model's template adds is not in it.
 */

/** Role, and the marks that begin and end a message. */
const messageTokens = 4

/** Per kind of block: its fields that are text. Kinds that are not here count nothing of their own. */
const textFields: Record<string, readonly string[]> = {
  text: ['text'],
  thinking: ['thinking'],
  tool_use: ['name'],
  server_tool_use: ['name'],
  mcp_tool_use: ['name'],
  tool_reference: ['tool_name'],
  search_result: ['title', 'source'],
  document: ['title', 'context'],
}

/** Blocks whose `content` is again a text or blocks. */
const nesting = new Set(['tool_result', 'mcp_tool_result', 'search_result'])

/**
 * The tokens of a parsed body of count_tokens or of messages, estimated; the same body always gives the same number.
 * `model` is the caller's to check.
 * @throws GatewayError 400 `invalid_body` that names `messages`, `system` or `tools`.
 */
export function countMessagesTokens(body: unknown): number {
  const fields = readObject(body, 'body')
  if (isAbsent(fields.messages)) refuse('messages', '"messages" is required and must be an array.')
  let tokens = isAbsent(fields.system) ? 0 : countContent(fields.system, 'system')
  for (const message of readArray(fields.messages, 'messages')) {
    const { content } = readObject(message, 'messages', 'each message')
    tokens += messageTokens
    if (!isAbsent(content)) tokens += countContent(content, 'messages')
  }
  if (!isAbsent(fields.tools)) {
    for (const tool of readArray(fields.tools, 'tools')) tokens += countTool(readObject(tool, 'tools', 'each tool'))
  }
  return tokens
}

/** A text, or blocks. Blocks within blocks wait in a list: how deep a client nests them costs no stack. */
function countContent(content: unknown, param: string): number {
  let tokens = 0
  const waiting = [content]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next === 'string') {
      tokens += estimateTextTokens(next)
      continue
    }
    for (const item of readArray(next, param, 'content')) {
      const block = readObject(item, param, 'each content block')
      const type = typeof block.type === 'string' ? block.type : ''
      for (const field of Object.hasOwn(textFields, type) ? textFields[type]! : []) {
        if (!isAbsent(block[field]))
          tokens += estimateTextTokens(readString(block[field], param, `${field} of a block`))
      }
      if (type.endsWith('tool_use')) tokens += countJson(block.input)
      if (nesting.has(type) && !isAbsent(block.content)) waiting.push(block.content)
      if (type === 'image') tokens += countSource(block.source, param, imageTokensMax, waiting)
      if (type === 'document') tokens += countSource(block.source, param, pageTokens, waiting)
    }
  }
  return tokens
}

/** What an image or document shows. One whose data is elsewhere or in a format we do not know counts `otherwise`. */
function countSource(value: unknown, param: string, otherwise: number, waiting: unknown[]): number {
  const source: Json = readObject(value, param, 'the source of a block')
  if (source.type === 'text') return estimateTextTokens(readString(source.data, param, 'data of a source'))
  if (source.type === 'content' && !isAbsent(source.content)) {
    waiting.push(source.content)
    return 0
  }
  if (source.type !== 'base64') return otherwise
  const data = readString(source.data, param, 'data of a source')
  return estimateMediaTokens(data, data.length) ?? otherwise
}

function countTool(tool: Json): number {
  let tokens = isAbsent(tool.name) ? 0 : estimateTextTokens(readString(tool.name, 'tools', 'name'))
  if (!isAbsent(tool.description)) tokens += estimateTextTokens(readString(tool.description, 'tools', 'description'))
  return tokens + countJson(tool.input_schema)
}

function countJson(value: unknown): number {
  return isAbsent(value) ? 0 : estimateTextTokens(JSON.stringify(value))
}
