import { asObject, type Edit, type Range } from '../../bytes/json.ts'
import { elementsOf, removeElements } from '../../bytes/json-edit.ts'
import { type JsonNode, readNodes, valuesOf } from '../../bytes/json-nodes.ts'
import type { Model } from '../../catalog/model.ts'
import type { Loss } from '../../inference/request.ts'
import {
  type AdaptContext,
  type AdaptedRequest,
  adaptBody,
  capTokens,
  commonValues,
  droppedFields,
  renameDevelopers,
  sentFields,
  sentService,
  setCacheKey,
} from '../requests/adapt-bytes.ts'
import type { ClientBody } from '../requests/client-body.ts'
import { checkReach, isSelfContained } from '../requests/reach.ts'
import { mayHideReasoning } from '../requests/reasoning-wish.ts'
import { isReference, referenceRefused } from './stateless.ts'

const hostedWords = ['_search', '_interpreter', '_generation', '_preview']
const hostedEndings = ['mcp', 'shell', 'computer'] as const

/**
 * Adapts a responses request for a responses model (ruling P1).
 * @throws GatewayError 400 for a reference to a stored item
 */
export function adaptRequest(body: ClientBody, model: Model, context: AdaptContext): AdaptedRequest {
  const values = commonValues(body, model, context)
  values.set('store', 'false')
  let outputTokensCap = model.outputTokensMax
  if (body.has('max_output_tokens') && !model.profile.drops.has('max_output_tokens')) {
    const asked = body.value('max_output_tokens') as number
    outputTokensCap = capTokens(model, asked)
    if (outputTokensCap !== asked) values.set('max_output_tokens', String(outputTokensCap))
  }
  setCacheKey(body, model, values, context)
  const { edits, effort } = checkItems(body, model, context)
  const sent = sentFields(body, values)
  checkReach(body, model, (type) => type !== 'function' && type !== 'namespace', 'input')
  return {
    body: adaptBody(body, values, [...edits, ...renameDevelopers(body, model, 'input')]),
    stream: body.value('stream') === true,
    isSelfContained: isSelfContained(body, hostedWords, hostedEndings),
    service: sentService(body, values),
    outputTokensCap,
    choices: 1,
    mayHideReasoning: mayHideReasoning(
      (field) => (field === 'reasoning' && effort ? { ...asObject(sent(field)), effort } : sent(field)),
      model.profile,
    ),
    losses: [...droppedFields(values), ...(edits.length > 0 ? [unprovenDropped] : [])],
  }
}

/** An input with a reference or a reasoning item has at least one of these strings. A reference always has an id. */
const mayRefer = ['reasoning', 'id', 'item_reference'] as const

const unprovenDropped: Loss = { field: 'input', what: 'dropped', why: 'reasoning that the model cannot open' }

/** `effort`: the effort of the last `configuration_update` (ruling Y11). */
type CheckedItems = { edits: Edit[]; effort?: unknown }

/**
 * Refuses references to stored items (spec 2.7), and removes reasoning that this provider cannot open (ruling P1). Such
 * reasoning has one of our envelopes as `encrypted_content`. Reasoning without `encrypted_content` is removed only if
 * the profile says so.
 */
function checkItems(body: ClientBody, { profile }: Model, context: AdaptContext): CheckedItems {
  if (!body.isArray('input')) return { edits: [] }
  const { bytes } = body
  if (!body.hasEscapedLetters && !mayRefer.some((word) => body.holdsString(word))) return { edits: [] }
  let effort: unknown
  const items = elementsOf(bytes, body.member('input')!)
  const foreign = new Set<number>()
  for (const [i, range] of items.entries()) {
    const item = readShortItem(body, range)
    if (item === undefined) continue
    // If a member occurs more than once, each occurrence is judged (ruling Y12).
    const valuesAt = (key: string) => valuesOf(item, key).map((node) => body.parse(node))
    if (isReference(valuesAt)) throw referenceRefused(i)
    if (valuesAt('type').includes('configuration_update'))
      for (const node of valuesOf(item, 'reasoning')) effort = asObject(body.parse(node))?.['effort'] ?? effort
    if (!valuesAt('type').includes('reasoning')) continue
    const seals = valuesAt('encrypted_content').filter((seal) => typeof seal === 'string' && seal !== '') as string[]
    const isSealed = seals.length > 0
    if (isSealed ? seals.some(context.isOurSeal) : profile.unprovenThought === 'remove') foreign.add(i)
  }
  return { edits: removeElements(items, (index) => foreign.has(index)), effort }
}

/** Parses an item that may be a reference or reasoning. Messages with large content are skipped. */
function readShortItem({ bytes, hasEscapedLetters }: ClientBody, range: Range): JsonNode | undefined {
  if (bytes[range.start] !== 0x7b) return undefined
  const text = bytes.subarray(range.start, range.end)
  const isShort = text.length <= 512 || hasEscapedLetters
  return isShort || text.includes('"reasoning"') || text.includes('item_reference')
    ? readNodes(bytes, range)
    : undefined
}
