import { asObject } from '../../bytes/json.ts'
import { estimateTextTokens } from '../../inference/estimate.ts'
import { estimateMediaTokens, imageTokensMax, pageTokens } from '../../inference/estimate-media.ts'
import {
  isAbsent,
  type Json,
  optionalEach,
  readArray,
  readEach,
  readObject,
  readString,
} from '../requests/read-value.ts'

/*
 * Answers /v1/messages/count_tokens (spec 4.2). The count is the token estimate of the client's text, plus images and
 * documents by their own rule, plus a few tokens per message. Text that a model's template adds is not counted.
 */

/** Tokens per message for its role and its begin and end marks. */
const messageTokens = 4

/** The fields with countable text, by kind of block. A kind that is not listed has no such field. */
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

/** Blocks whose `content` is a text or a list of blocks. */
const nesting = new Set(['tool_result', 'mcp_tool_result', 'search_result', 'compaction'])

/**
 * Estimates the tokens of a body of count_tokens or of messages. The same body always gives the same number.
 * @param body the parsed body; its model and conversation are checked already
 * @throws GatewayError 400 `invalid_body` that names `messages`, `system` or `tools`
 */
export function countTokens(body: Json): number {
  let tokens = isAbsent(body.system) ? 0 : countContent(body.system, 'system')
  const field = 'messages'
  for (const count of readEach(body[field], field, countMessage)) tokens += count
  for (const count of optionalEach(body.tools, 'tools', countTool)) tokens += count
  return tokens
}

function countMessage(entry: unknown, at: string): number {
  const { content } = readObject(entry, at)
  return isAbsent(content) ? messageTokens : messageTokens + countContent(content, `${at}.content`)
}

/**
 * Counts a text or blocks. Nested blocks are put into a list instead of recursing, since clients may nest them
 * deeply.
 */
function countContent(content: unknown, at: string): number {
  let tokens = 0
  const waiting: ContentQueue = [{ content, at }]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if (typeof next.content === 'string') tokens += estimateTextTokens(next.content)
    else tokens += countBlocks(next.content, next.at, waiting)
  }
  return tokens
}

type ContentQueue = { content: unknown; at: string }[]

function countBlocks(content: unknown, at: string, waiting: ContentQueue): number {
  let tokens = 0
  for (const [index, item] of readArray(content, at).entries()) tokens += countBlock(item, `${at}[${index}]`, waiting)
  return tokens
}

function countBlock(item: unknown, at: string, waiting: ContentQueue): number {
  let tokens = 0
  const block = readObject(item, at)
  const type = typeof block.type === 'string' ? block.type : ''
  for (const field of Object.hasOwn(textFields, type) ? textFields[type]! : []) {
    if (!isAbsent(block[field])) tokens += estimateTextTokens(readString(block[field], `${at}.${field}`))
  }
  if (type.endsWith('tool_use')) tokens += countJson(block.input)
  const added = type === 'tool_addition' ? asObject(block.tool)?.['definition'] : undefined
  if (!isAbsent(added)) tokens += countTool(added, `${at}.tool.definition`)
  if (nesting.has(type) && !isAbsent(block.content)) waiting.push({ content: block.content, at: `${at}.content` })
  if (type === 'image') tokens += countSource(block.source, `${at}.source`, imageTokensMax, waiting)
  if (type === 'document') tokens += countSource(block.source, `${at}.source`, pageTokens, waiting)
  return tokens
}

/**
 * The tokens of an image or document. Returns `otherwise` if its data are not in the body, or have an unknown format.
 */
function countSource(value: unknown, at: string, otherwise: number, waiting: ContentQueue): number {
  const source: Json = readObject(value, at)
  if (source.type === 'text') return estimateTextTokens(readString(source.data, `${at}.data`))
  if (source.type === 'content' && !isAbsent(source.content)) {
    waiting.push({ content: source.content, at: `${at}.content` })
    return 0
  }
  if (source.type !== 'base64') return otherwise
  const data = readString(source.data, `${at}.data`)
  return estimateMediaTokens(data, data.length) ?? otherwise
}

function countTool(entry: unknown, at: string): number {
  const tool = readObject(entry, at)
  let tokens = isAbsent(tool.name) ? 0 : estimateTextTokens(readString(tool.name, `${at}.name`))
  if (!isAbsent(tool.description)) tokens += estimateTextTokens(readString(tool.description, `${at}.description`))
  return tokens + countJson(tool.input_schema)
}

function countJson(value: unknown): number {
  return isAbsent(value) ? 0 : estimateTextTokens(JSON.stringify(value))
}
