import { asObject } from '../../bytes/json.ts'
import type { NotedEnding } from '../../bytes/scan.ts'
import { holdsWord } from '../../bytes/search.ts'
import type { Model } from '../../catalog/model.ts'
import type { ClientBody } from './client-body.ts'
import { refusals, refuse } from './refusals.ts'

/*
 * What a request of the model's own wire has its provider do beyond answering: run tools of its own, fetch addresses,
 * look up what it stores. There are two looks at it, which err to different sides: `checkReach` refuses what a model's entry
 * does not let pass, and must be certain, so it knows the places (rulings C7, U12); `isSelfContained` decides whether the
 * provider's figures can be held against the body, and must miss nothing, so it looks for the words (ruling C14). Neither
 * can stand for the other: what passes by the entry is still not self-contained.
 */

/** Fields that call a tool of the provider's, whatever `tools` says. */
const hostedFields = ['web_search_options', 'plugins', 'search_parameters', 'mcp_servers', 'container']

/** Where media stand in a part of the content, as an address or as an object with one. */
const mediaFields = ['image_url', 'video_url', 'audio_url', 'file_url']

/** Members behind which there are parts. All others are the client's own matter, such as the arguments of a call. */
const innerFields = ['content', 'output', 'source', 'file']

/** Without one of these, or an escape that may hide one, a body names no address and nothing stored. */
const signs = ['_url"', '"url"', 'file_id', '\\u']

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
  return bytes.indexOf('_url"') < 0 && bytes.indexOf('"url"') < 0
}

/**
 * @param isHosted whether an entry of `tools` is run by the provider
 * @param conversation the field in which there are parts
 * @throws GatewayError 400 naming the place.
 */
export function checkReach(
  body: ClientBody,
  model: Model,
  isHosted: (tool: Record<string, unknown>) => boolean,
  conversation: string,
): void {
  if (model.hostedTools === 'refuse') checkHosted(body, isHosted, conversation)
  if (model.storedFiles === 'refuse' && body.has('prompt')) refuse('prompt', refusals.storedFile)
  if (model.remoteMedia === 'pass' && model.storedFiles === 'pass') return
  if (!body.isArray(conversation) || signs.every((sign) => body.bytes.indexOf(sign) < 0)) return
  checkParts(body.value(conversation), conversation, model)
}

function checkHosted(
  body: ClientBody,
  isHosted: (tool: Record<string, unknown>) => boolean,
  conversation: string,
): void {
  checkTools(body.isArray('tools') ? body.value('tools') : undefined, 'tools')
  for (const field of hostedFields) if (body.has(field)) refuse(field, refusals.hostedTool)
  // Tools may also be declared by an item of the conversation.
  if (!body.isArray(conversation) || (body.bytes.indexOf('tool') < 0 && body.bytes.indexOf('\\u') < 0)) return
  for (const [index, item] of listOf(body.value(conversation)).entries()) {
    checkTools(asObject(item)?.['tools'], `${conversation}[${index}].tools`)
    for (const [at, part] of listOf(asObject(item)?.['content']).entries()) {
      const added = asObject(asObject(part)?.['tool'])
      if (added) checkTools([added['definition'] ?? added], `${conversation}[${index}].content[${at}].tool`)
    }
  }

  function checkTools(tools: unknown, path: string): void {
    for (const [index, entry] of listOf(tools).entries()) {
      const tool = asObject(entry)
      if (tool && tool['type'] !== 'tool_reference' && isHosted(tool)) refuse(`${path}[${index}]`, refusals.hostedTool)
    }
  }
}

function checkParts(value: unknown, path: string, model: Model): void {
  for (const [index, entry] of listOf(value).entries()) checkPart(asObject(entry), `${path}[${index}]`, model)
}

function checkPart(part: Record<string, unknown> | undefined, path: string, model: Model): void {
  if (part === undefined) return
  for (const field of mediaFields) checkAddress(part[field], `${path}.${field}`, model)
  if (part['type'] === 'url') checkAddress(part['url'], `${path}.url`, model)
  if (model.storedFiles === 'refuse' && part['file_id'] != null) refuse(`${path}.file_id`, refusals.storedFile)
  for (const field of innerFields) {
    const inner = part[field]
    if (Array.isArray(inner)) checkParts(inner, `${path}.${field}`, model)
    else checkPart(asObject(inner), `${path}.${field}`, model)
  }
}

function checkAddress(value: unknown, path: string, model: Model): void {
  const address = asObject(value)?.['url'] ?? value
  if (model.remoteMedia === 'pass' || typeof address !== 'string') return
  if (!/^\s*data:/i.test(address)) refuse(path, refusals.remoteFile)
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
