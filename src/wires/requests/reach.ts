import { type JsonNode, valuesOf } from '../../bytes/json-nodes.ts'
import type { NotedEnding } from '../../bytes/scan.ts'
import { holdsWord } from '../../bytes/search.ts'
import type { Model } from '../../catalog/model.ts'
import { paidToolFields } from '../../catalog/routing-fields.ts'
import type { ClientBody } from './client-body.ts'
import { refusals, refuse } from './refusals.ts'

/*
 * The parts of a request of the model's own wire that have its provider do more than answer. The provider runs tools of
 * its own, fetches addresses, or looks up stored files. Two functions look for such parts, and err to different sides.
 *
 * `checkReach` refuses what a model's entry does not let pass. It must be certain, so it knows the places (rulings C7,
 * U12). `isSelfContained` decides whether the provider's figures can be held against the body. It must miss nothing, so
 * it looks for the words (ruling C14). Neither can replace the other: a body that passes by the entry is still not
 * self-contained.
 */

/** Fields that call a tool of the provider's, whatever `tools` says. */
export const hostedFields: readonly string[] = [
  ...['web_search_options', 'plugins', 'search_parameters', 'mcp_servers', 'container'],
  ...paidToolFields,
]

/** The members in which a part of the content has media, as an address or as an object with one. */
const mediaFields = ['image_url', 'video_url', 'audio_url', 'file_url']

/**
 * Fields in which servers of single makers have media: an address, its data, an object or a list of them. The sources are
 * Qwen's own spelling, vLLM's `image_embeds`, and `input_audio` of the chat wire, which has data.
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
  // Of a message, beside its content (OpenRouter; Ollama).
  'images',
  'videos',
]

/**
 * Members for data. Some servers take an address there as well: OpenRouter does in `file_data`
 * (openrouter.ai/docs/guides/overview/multimodal/pdfs, 2026-11).
 */
const dataFields = ['file_data', 'data']

/** Members that hold parts. All others are the client's own matter, such as the arguments of a call. */
const innerFields = ['content', 'output', 'source', 'file']

/** Without one of these, or an escape that may hide one, a body names no address and nothing stored. */
const signs = ['_url"', '"url"', 'file_id', '\\u', ...[...looseFields, ...dataFields].map((field) => `"${field}"`)]

/** A body that these fields stand in is compacted by the provider, which writes more than the answer. */
const compactingFields = ['context_management', 'compaction']

/**
 * Whether the body is all that the model reads, and the cap bounds all that it writes (ruling C14). It looks for the words
 * of what reaches further and not for their places: who is in doubt believes the provider.
 * @param hostedWords what stands in entries of `tools` that the provider runs, and hardly anywhere else
 * @param hostedEndings what the names of such tools end in
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
  if (hostedWords.some((word) => holdsWord(bytes, word)) || holdsWord(bytes, 'file_id')) return false
  // Addresses, with their slashes escaped or not, in the fields that hold them.
  if (bytes.indexOf('//') < 0 && bytes.indexOf('/\\') < 0) return true
  if (bytes.indexOf('_url"') >= 0 || bytes.indexOf('"url"') >= 0) return false
  if (dataFields.some((field) => holdsMember(bytes, field, (at) => mayBeAddress(textAt(bytes, at))))) return false
  return !looseFields.some((field) => holdsMember(bytes, field))
}

/** The beginning of a text. @param at where a value begins @returns '' for other values and for a data URL */
function textAt(bytes: Buffer, at: number): string {
  const [, text = ''] = /^\s*"([^"]*)/.exec(bytes.toString('latin1', at, at + addressMax)) ?? []
  return /^\s*data:/i.test(text) ? '' : text.replaceAll('\\/', '/')
}

/**
 * Whether JSON has a member of this name, written without escapes. A value of the same text does not count.
 * @param isMeant whether the value that begins at this place is one that is looked for
 */
function holdsMember(bytes: Buffer, name: string, isMeant: (at: number) => boolean = () => true): boolean {
  const word = `"${name}"`
  // Quotes are rare enough in a body for a native search, which leaps from one to the next.
  for (let at = bytes.indexOf(word); at >= 0; at = bytes.indexOf(word, at + 1)) {
    let end = at + word.length
    while (bytes[end]! <= 0x20) end++
    if (bytes[end] === 0x3a && isMeant(end + 1)) return true
  }
  return false
}

/**
 * Of members that occur more than once each is judged (ruling Y12): readers differ in which one they take.
 * @param isHosted whether an entry of `tools` with this `type` is run by the provider
 * @param conversation the field in which there are parts
 * @throws GatewayError 400 naming the place.
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
    // The data of a source of this type are the client's text.
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
    // Data are read no further than to the word that says so.
    const isText = bytes[start] === 0x22 && !/^"data:/i.test(bytes.toString('latin1', start, start + 6))
    if (model.remoteMedia === 'pass' || !isText) return
    if (!/^\s*data:/i.test(body.parse({ start, end }) as string)) refuse(path, refusals.remoteFile)
  }
}

/** A scheme stands within so many bytes; longer texts of base64 alone are data, which may begin with two slashes. */
const addressMax = 128

function mayBeAddress(text: string): boolean {
  if (/^\s*[a-z][a-z0-9+.-]*:/i.test(text)) return true
  return /^\s*\/\//.test(text) && !(text.length >= addressMax - 1 && /^[A-Za-z0-9+/]*$/.test(text))
}

function checkHosted(body: ClientBody, isHosted: (type: unknown) => boolean, conversation: string): void {
  checkTools(body.nodes('tools'), 'tools')
  for (const field of hostedFields) if (body.has(field)) refuse(field, refusals.hostedTool)
  // Tools may also be declared by an item of the conversation.
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
