import { holdsWord } from '../../bytes/json.ts'
import { type JsonNode, valuesOf } from '../../bytes/json-nodes.ts'
import type { NotedEnding } from '../../bytes/scan.ts'
import type { Model } from '../../catalog/model.ts'
import { paidToolFields } from '../../catalog/routing-fields.ts'
import type { ClientBody } from './client-body.ts'
import { refusals, refuse } from './refusals.ts'

/*
 * Finds parts of a native request that make the provider do more than answer: run its own tools, fetch addresses, or
 * look up stored files.
 *
 * `checkReach` refuses parts that the model's entry does not allow. It must be certain, so it checks only known places
 * (rulings C7, U12).
 *
 * `isSelfContained` tells whether the provider reads nothing but the body. Only then can its token counts be compared
 * with the body. The function must miss nothing, so it searches for words in any place (ruling C14).
 */

/** Fields that call a hosted tool, whatever `tools` contains. A hosted tool is run by the provider. */
export const hostedFields: readonly string[] = [
  ...['web_search_options', 'plugins', 'search_parameters', 'mcp_servers', 'container'],
  ...paidToolFields,
]

/** Members of content parts that hold media, as an address or as an object with an address. */
const mediaFields = ['image_url', 'video_url', 'audio_url', 'file_url']

/**
 * Fields in which only some servers accept media. The value is an address, data, an object, or a list of such values.
 * The names come from Qwen, from vLLM (`image_embeds`), and from the chat wire (`input_audio`, which holds data).
 */
const looseFields = [
  'image',
  'video',
  'audio',
  'input_audio',
  'input_image',
  'input_video',
  'image_embeds',
  'audio_embeds',
  // These two are members of a message, beside its content (OpenRouter; Ollama).
  'images',
  'videos',
]

/**
 * Members for data in which some servers also accept an address. OpenRouter does so in `file_data`
 * (openrouter.ai/docs/guides/overview/multimodal/pdfs, 2026-11).
 */
const dataFields = ['file_data', 'data']

/** Members that hold parts. All other members are the client's own data, such as the arguments of a call. */
const innerFields = ['content', 'output', 'source', 'file']

/**
 * Every body with an address or a stored file contains one of these texts. `\u` begins an escape that may hide such a
 * text.
 */
const signs = ['_url"', '"url"', 'file_id', '\\u', ...[...looseFields, ...dataFields].map((field) => `"${field}"`)]

/** Fields with which the provider compacts the conversation. The provider then writes more than the answer. */
const compactingFields = ['context_management', 'compaction']

/**
 * Whether the model reads nothing outside of the body, and writes no more than the output cap (ruling C14). The
 * function only searches the body for words. In doubt it returns false, and the provider's figures are believed.
 * @param hostedWords words that are rare outside of the `tools` entries of the provider's own tools
 * @param hostedEndings endings of the names of these tools
 */
export function isSelfContained(
  body: ClientBody,
  hostedWords: readonly string[],
  hostedEndings: readonly NotedEnding[] = [],
): boolean {
  const { bytes } = body
  if (body.hasEscapedLetters || body.has('prompt')) return false
  for (const field of hostedFields) if (body.has(field)) return false
  for (const field of compactingFields) if (body.has(field)) return false
  for (const ending of hostedEndings) if (body.holdsEnding(ending)) return false
  if (mayDeclareHosted(body)) return false
  if (hostedWords.some((word) => holdsWord(bytes, word)) || holdsWord(bytes, 'file_id')) return false
  // An address contains `//` or an escaped slash. A body without either is self-contained. A body with either is not
  // self-contained if it has a field that may hold an address.
  if (bytes.indexOf('//') < 0 && bytes.indexOf('/\\') < 0) return true
  if (bytes.indexOf('_url"') >= 0 || bytes.indexOf('"url"') >= 0) return false
  if (dataFields.some((field) => holdsMember(bytes, field, (at) => mayBeAddress(textAt(bytes, at))))) return false
  return !looseFields.some((field) => holdsMember(bytes, field))
}

/** A `type` in `tools` that belongs neither to a tool that the client runs nor to a schema or a cache mark. */
const hostedType =
  /"type"\s*:\s*"(?!(?:function|custom|namespace|text|grammar|ephemeral|object|array|string|number|integer|boolean|null)")/

/** Whether `tools` may have a tool of the provider. Providers invent types, so only known other types are harmless. */
function mayDeclareHosted(body: ClientBody): boolean {
  const tools = body.member('tools')
  return tools !== undefined && hostedType.test(body.bytes.toString('latin1', tools.start, tools.end))
}

/** The beginning of a text value; '' for other values and for data URLs. @param at where the value begins */
function textAt(bytes: Buffer, at: number): string {
  const [, text = ''] = /^\s*"([^"]*)/.exec(bytes.toString('latin1', at, at + addressMax)) ?? []
  return /^\s*data:/i.test(text) ? '' : text.replaceAll('\\/', '/')
}

/**
 * Whether the JSON has a member with this name, written without escapes. A value with the same text does not count.
 * @param isMeant whether the value at this position is of the kind searched for
 */
function holdsMember(bytes: Buffer, name: string, isMeant: (at: number) => boolean = () => true): boolean {
  const word = `"${name}"`
  // The built-in search for `word` is fast, because `word` begins with a quote and a body has few quotes.
  for (let at = bytes.indexOf(word); at >= 0; at = bytes.indexOf(word, at + 1)) {
    let end = at + word.length
    while (bytes[end]! <= 0x20) end++
    if (bytes[end] === 0x3a && isMeant(end + 1)) return true
  }
  return false
}

/**
 * Refuses parts that the model's entry does not allow. If a member occurs more than once, each occurrence is judged,
 * since servers differ in which occurrence they read (ruling Y12).
 * @param isHosted whether the provider runs a `tools` entry of this `type`
 * @param conversation the field that holds the parts
 * @throws GatewayError 400 naming the place
 */
export function checkReach(
  body: ClientBody,
  model: Model,
  isHosted: (type: unknown) => boolean,
  conversation: string,
): void {
  if (model.hostedTools === 'refuse') checkHosted(body, isHosted, conversation)
  if (model.storedFiles === 'refuse' && body.has('prompt')) refuse('prompt', refusals.storedFile)
  if (model.remoteMedia === 'pass' && model.storedFiles === 'pass') return
  if (!body.isArray(conversation) || signs.every((sign) => body.bytes.indexOf(sign) < 0)) return
  checkParts(body.nodes(conversation)!, conversation)

  function checkParts({ items = [] }: JsonNode, path: string): void {
    for (const [index, part] of items.entries()) checkPart(part, `${path}[${index}]`)
  }

  function checkPart(part: JsonNode, path: string): void {
    for (const field of mediaFields) {
      for (const value of valuesOf(part, field))
        for (const address of [value, ...valuesOf(value, 'url')]) checkAddress(address, `${path}.${field}`)
    }
    for (const field of looseFields) for (const value of valuesOf(part, field)) checkLoose(value, `${path}.${field}`)
    const types = valuesOf(part, 'type').map((type) => body.parse(type))
    // In a source of type `text`, the data are the client's text, not an address.
    if (types.length === 0 || types.some((type) => type !== 'text'))
      for (const field of dataFields) for (const value of valuesOf(part, field)) checkLoose(value, `${path}.${field}`)
    if (types.includes('url'))
      for (const value of valuesOf(part, 'url'))
        for (const address of [value, ...valuesOf(value, 'url')]) checkAddress(address, `${path}.url`)
    const isStored = valuesOf(part, 'file_id').some(({ start }) => body.bytes[start] !== 0x6e)
    if (model.storedFiles === 'refuse' && isStored) refuse(`${path}.file_id`, refusals.storedFile)
    for (const field of innerFields) {
      for (const inner of valuesOf(part, field)) {
        checkParts(inner, `${path}.${field}`)
        checkPart(inner, `${path}.${field}`)
      }
    }
  }

  function checkLoose(value: JsonNode, path: string): void {
    for (const inner of [...(value.items ?? []), ...(value.members ?? [])]) checkLoose(inner, path)
    const head = body.bytes.toString('latin1', value.start, Math.min(value.end, value.start + addressMax))
    if (head.startsWith('"') && mayBeAddress(head.includes('\\') ? (body.parse(value) as string) : head.slice(1)))
      checkAddress(value, path)
  }

  function checkAddress({ start, end }: JsonNode, path: string): void {
    const { bytes } = body
    // Data URLs are recognised by their first bytes, so that large data are not read.
    const isText = bytes[start] === 0x22 && !/^"data:/i.test(bytes.toString('latin1', start, start + 6))
    if (model.remoteMedia === 'pass' || !isText) return
    if (!/^\s*data:/i.test(body.parse({ start, end }) as string)) refuse(path, refusals.remoteFile)
  }
}

/**
 * The number of characters at the start of a text in which a scheme such as `https:` is searched. A longer text that
 * has only base64 characters is data, even if it begins with two slashes.
 */
const addressMax = 128

function mayBeAddress(text: string): boolean {
  if (/^\s*[a-z][a-z0-9+.-]*:/i.test(text)) return true
  return /^\s*\/\//.test(text) && !(text.length >= addressMax - 1 && /^[A-Za-z0-9+/]*$/.test(text))
}

function checkHosted(body: ClientBody, isHosted: (type: unknown) => boolean, conversation: string): void {
  checkTools(body.nodes('tools'), 'tools')
  for (const field of hostedFields) if (body.has(field)) refuse(field, refusals.hostedTool)
  // Items of the conversation can declare tools too.
  if (!body.isArray(conversation) || (body.bytes.indexOf('tool') < 0 && body.bytes.indexOf('\\u') < 0)) return
  for (const [index, item] of (body.nodes(conversation)!.items ?? []).entries()) {
    for (const tools of valuesOf(item, 'tools')) checkTools(tools, `${conversation}[${index}].tools`)
    for (const { items = [] } of valuesOf(item, 'content'))
      for (const [at, part] of items.entries()) checkAdded(part, `${conversation}[${index}].content[${at}].tool`)
  }

  function checkAdded(part: JsonNode, path: string): void {
    for (const added of valuesOf(part, 'tool')) {
      const definitions = valuesOf(added, 'definition').filter(({ start }) => body.bytes[start] !== 0x6e)
      for (const tool of definitions.length > 0 ? definitions : [added]) checkTool(tool, `${path}[0]`)
    }
  }

  function checkTools(tools: JsonNode | undefined, path: string): void {
    for (const [index, tool] of (tools?.items ?? []).entries()) checkTool(tool, `${path}[${index}]`)
  }

  function checkTool(tool: JsonNode, path: string): void {
    if (tool.members === undefined) return
    const types = valuesOf(tool, 'type').map((type) => body.parse(type))
    const judged = types.length > 0 ? types : [undefined]
    if (judged.some((type) => type !== 'tool_reference' && isHosted(type))) refuse(path, refusals.hostedTool)
  }
}
