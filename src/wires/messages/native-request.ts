import { asObject, type Edit, endOfString, parseExactly } from '../../bytes/json.ts'
import { elementsOf, removeElements } from '../../bytes/json-edit.ts'
import type { Model } from '../../catalog/model.ts'
import type { Loss } from '../../inference/request.ts'
import { objectsOf } from '../answers/read-answer.ts'
import {
  type AdaptContext,
  type AdaptedRequest,
  adaptBody,
  capTokens,
  commonValues,
  droppedFields,
  type MemberValues,
  sentFields,
  sentService,
  setInside,
} from '../requests/adapt-bytes.ts'
import type { ClientBody } from '../requests/client-body.ts'
import { checkReach, isSelfContained } from '../requests/reach.ts'
import { mayHideReasoning } from '../requests/reasoning-wish.ts'
import { opaqueId } from '../requests/stand-ins.ts'
import { markClientBody } from './cache-marks.ts'
import { findClientTool } from './client-tools.ts'
import { goesOnUnproven } from './thought.ts'

/** Words in the types of hosted tools: the start of a date, or `_toolset`. Some client-run tools have a date too. */
const hostedWords = ['_202', '_toolset']

/** The smallest thinking budget that the wire accepts. */
const thinkingBudgetMin = 1_024

/** Adapts a messages request for a messages model (ruling P1). */
export function adaptRequest(body: ClientBody, model: Model, context: AdaptContext): AdaptedRequest {
  const values = commonValues(body, model, context)
  let outputTokensCap = model.outputTokensMax
  if (!model.profile.drops.has('max_tokens')) {
    const asked = body.value('max_tokens') as number
    outputTokensCap = capTokens(model, asked)
    if (outputTokensCap !== asked) values.set('max_tokens', String(outputTokensCap))
  }
  const unsigned = model.profile.unprovenThought === 'remove' ? removeUnsignedThinking(body) : []
  const losses: Loss[] = []
  if (unsigned.length > 0) {
    losses.push({ field: 'messages', what: 'dropped', why: 'unsigned thinking' })
    if (body.valuesInside('thinking', 'type').includes('enabled') && goesOnUnsigned(body)) {
      values.set('thinking', undefined)
      losses.push({ field: 'thinking', what: 'dropped', why: 'the turn that goes on has no signed thinking' })
    }
  }
  const edits = [...unsigned, ...fitThinking(body, outputTokensCap, values)]
  if (values.has('thinking') && stopClearing(body, values))
    losses.push({ field: 'context_management', what: 'dropped', why: 'an edit of thinking, which is not asked for' })
  const user = model.profile.strictFields && body.has('user') ? moveUser(body, values) : undefined
  if (user) edits.push(...user)
  edits.push(...markClientBody(body, model.profile, context.scopedKey !== undefined, values))
  checkReach(body, model, isHosted, 'messages')
  return {
    body: adaptBody(body, values, edits),
    stream: body.value('stream') === true,
    isSelfContained: isSelfContained(body, hostedWords),
    service: sentService(body, values),
    outputTokensCap,
    choices: 1,
    mayHideReasoning: mayHideReasoning(sentFields(body, values), model.profile),
    losses: [...losses, ...droppedFields(values, [...(user ? ['user'] : []), ...losses.map(({ field }) => field)])],
  }
}

/** Whether the provider runs a tool of this type. The client runs some tools that the vendor defines (ruling T6). */
function isHosted(type: unknown): boolean {
  return typeof type === 'string' && type !== 'custom' && findClientTool(type) === undefined
}

/** If a lowered cap is too small for the thinking budget, the budget becomes half the cap, or thinking is removed. */
function fitThinking(body: ClientBody, cap: number, values: MemberValues): Edit[] {
  if (!body.isObject('thinking') || values.has('thinking')) return []
  const budgets = body.valuesInside('thinking', 'budget_tokens')
  // A budget is corrected only if our lower cap made it invalid. If the client sent an invalid budget, the model
  // refuses it.
  const isTooBig = budgets.some((budget) => typeof budget === 'number' && budget >= cap)
  if (values.get('max_tokens') === undefined || !isTooBig) return []
  const fitted = Math.floor(cap / 2)
  if (fitted >= thinkingBudgetMin) return setInside(body, 'thinking', new Map([['budget_tokens', String(fitted)]]))
  values.set('thinking', undefined)
  return []
}

/**
 * Removes edits that clear old thinking from `context_management`. Upstreams refuse them without `thinking`, with the
 * error "`clear_thinking_20251015` strategy requires `thinking` to be enabled" (anthropics/claude-code#11971).
 * @returns whether there were such edits
 */
function stopClearing(body: ClientBody, values: MemberValues): boolean {
  const field = 'context_management'
  if (values.has(field)) return false
  const { edits, ...others } = asObject(body.value(field)) ?? {}
  const all: unknown[] = Array.isArray(edits) ? edits : []
  const kept = all.filter((edit) => !/^clear_thinking/.test(`${asObject(edit)?.['type']}`))
  if (kept.length === all.length) return false
  const isEmpty = kept.length === 0 && Object.keys(others).length === 0
  values.set(field, isEmpty ? undefined : JSON.stringify({ ...others, edits: kept }))
  return true
}

/**
 * Moves the user's id from `user` to `metadata.user_id`, for an upstream that rejects fields of other wires (ruling
 * P5).
 * @returns undefined if the id is dropped
 */
function moveUser(body: ClientBody, values: MemberValues): Edit[] | undefined {
  const user = body.value('user')
  values.set('user', undefined)
  if (typeof user !== 'string') return undefined
  const user_id = opaqueId(user)
  if (body.isObject('metadata') && !values.has('metadata')) {
    const isFree = body.valuesInside('metadata', 'user_id').every((id) => id == null)
    return isFree ? setInside(body, 'metadata', new Map([['user_id', JSON.stringify(user_id)]])) : undefined
  }
  // Members that would choose another model or provider may have been removed from the metadata already (ruling Y13).
  const kept = asObject(parseExactly(values.get('metadata') ?? '{}')) ?? {}
  if (kept['user_id'] != null) return undefined
  values.set('metadata', JSON.stringify({ ...kept, user_id }))
  return values.get('metadata') === undefined ? undefined : []
}

/**
 * Removes thinking blocks whose signature is empty or missing. They come from another model's turn, and a provider that
 * signs thinking would refuse them (ruling P1). A message of only such blocks is removed too.
 */
function removeUnsignedThinking(body: ClientBody): Edit[] {
  if (!mayHoldUnsigned(body)) return []
  const { bytes } = body
  const messages = elementsOf(bytes, body.member('messages')!)
  const emptied = new Set<number>()
  const edits: Edit[] = []
  for (const [i, message] of messages.entries()) {
    if (bytes[message.start] !== 0x7b) continue
    const content = body.membersAt(message).findLast((member) => member.key === 'content')
    if (content === undefined || bytes[content.start] !== 0x5b) continue
    const blocks = elementsOf(bytes, content)
    const unsigned = blocks.map((block) => isUnsigned(bytes.toString('utf8', block.start, block.end)))
    if (!unsigned.includes(true)) continue
    if (unsigned.includes(false)) edits.push(...removeElements(blocks, (index) => unsigned[index]!))
    else emptied.add(i)
  }
  return [...edits, ...removeElements(messages, (index) => emptied.has(index))]
}

const thought = '"thinking"'
/** From the word on: the type and the text of a block, or the text alone. */
const thoughtHead = /"thinking"\s*(,\s*"thinking"\s*)?:\s*(?=")/y
const thenSignature = /"\s*,\s*"signature"\s*:\s*"[^"]/y
const thenType = /"\s*,\s*"type"\s*:\s*"thinking"/y
const isKey = /"thinking"\s*:/y

/**
 * A quick check: whether any thinking does not have its type, text and signature in the order of one of the vendor's
 * SDKs. These are the order of TypeScript and its reverse, which is that of Python.
 */
function mayHoldUnsigned(body: ClientBody): boolean {
  const messages = body.holdsString('thinking') && body.member('messages')
  if (!messages) return false
  const text = body.bytes.toString('latin1', messages.start, messages.end)
  let from = 0
  for (let at = text.indexOf(thought); at >= 0; at = text.indexOf(thought, from)) {
    from = at + thought.length
    const head = matchAt(thoughtHead, text, at)
    if (head) {
      from = endOfString(text, thoughtHead.lastIndex)
      if (head[1] !== undefined && !matchAt(thenSignature, text, from)) return true
      // In the reverse order, the type comes last. It is passed over, because it looks like the type of the next block.
      const isReverse = head[1] === undefined && hasSignatureBefore(text, at) && matchAt(thenType, text, from)
      if (isReverse) from = thenType.lastIndex
    } else if (!matchAt(isKey, text, at)) return true
  }
  return false
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

/** Whether the member before this position is a signature that is not empty. Signatures have no escapes. */
function hasSignatureBefore(text: string, at: number): boolean {
  const end = text.lastIndexOf('"', at - 1)
  const start = text.lastIndexOf('"', end - 1)
  const isNext = text.slice(end + 1, at).trim() === ','
  return isNext && start + 1 < end && /"signature"\s*:\s*$/.test(text.slice(Math.max(0, start - 32), start))
}

function isUnsigned(text: string): boolean {
  return text.includes('thinking') && isUnsignedBlock(JSON.parse(text))
}

/** Some clients leave out an empty signature (dirge-code/dirge#821). The provider then answers "Field required". */
function isUnsignedBlock(block: unknown): boolean {
  const { type, signature } = asObject(block) ?? {}
  return type === 'thinking' && !signature
}

/**
 * Whether the model goes on with a turn whose thinking was removed. With a thinking budget, upstreams require thinking
 * at the beginning of such a turn (R-HIST).
 */
function goesOnUnsigned(body: ClientBody): boolean {
  const messages = objectsOf(body.value('messages')).map(({ role, content }) => ({
    role,
    content: Array.isArray(content) ? objectsOf(content).filter((block) => !isUnsignedBlock(block)) : [{}],
  }))
  return goesOnUnproven(messages.filter(({ content }) => content.length > 0))
}
