import type { JsonObject } from '../../bytes/json.ts'
import { type Edit, memberText, type Range } from '../../bytes/json.ts'
import { elementsOf, setMembers } from '../../bytes/json-edit.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { InferenceRequest } from '../../inference/request.ts'
import type { MemberValues } from '../requests/adapt-bytes.ts'
import type { ClientBody } from '../requests/client-body.ts'
import type { EncodedMessage } from './encode-turns.ts'

/**
 * Whether to add cache marks to a request. A cache write costs a quarter more than plain input, and each later read
 * saves nine tenths. So a prompt that is sent only once gets no marks (ruling T5).
 * @param goesOn whether the request declares tools or has an answer in its history, so that further turns are likely
 */
function wantsMarks({ messages: { autoCache } }: Profile, hasKey: boolean, goesOn: boolean): boolean {
  switch (autoCache) {
    case 'off':
      return false
    case 'on_key':
      return hasKey
    case 'auto':
      return hasKey || goesOn
    case 'always':
      return true
  }
}

/**
 * Sets the cache marks of this wire for clients whose wires cache without marks (R-CACHE, ruling T5). The marks are
 * on the last tool, the last system block, and the last block of the last two user turns: four at most.
 * @returns whether any mark was set
 */
export function markForCache(
  request: InferenceRequest,
  profile: Profile,
  prompt: { tools: JsonObject[]; system: JsonObject[]; messages: readonly EncodedMessage[] },
): boolean {
  const goesOn = request.tools.length > 0 || request.turns.some((turn) => turn.by === 'model')
  if (!wantsMarks(profile, request.cacheKey !== undefined, goesOn)) return false
  const users = prompt.messages.filter(({ role }) => role === 'user').slice(-2)
  const blocks = [prompt.tools, prompt.system, ...users.map(({ content }) => content)]
  for (const list of blocks) {
    const last = list.at(-1)
    if (last) last['cache_control'] = { type: 'ephemeral' }
  }
  return true
}

/**
 * Sets the marks of `markForCache` in a client's own messages request. The request must have no marks, and the profile
 * must allow adding them (ruling T5). Content that is a string becomes a text block, which means the same on this wire.
 */
export function markClientBody(body: ClientBody, profile: Profile, hasKey: boolean, values: MemberValues): Edit[] {
  if (!profile.messages.autoCacheSameWire || body.holdsString('cache_control')) return []
  const messages = listAt(body, 'messages')
  const tools = values.has('tools') ? [] : listAt(body, 'tools')
  const goesOn = tools.length > 0 || messages.some((message) => roleOf(body, message) === 'assistant')
  if (!wantsMarks(profile, hasKey, goesOn)) return []
  const edits = [
    ...markLast(
      body,
      tools.filter((tool) => !isDeferred(body, tool)),
    ),
  ]
  if (body.isArray('system')) edits.push(...markLast(body, listAt(body, 'system')))
  else if (body.isString('system') && body.value('system') !== '')
    values.set('system', blockOf(memberText(body.bytes, body.member('system')!)))
  const users = messages.filter((message) => roleOf(body, message) === 'user').slice(-2)
  for (const user of users) edits.push(...markContent(body, user))
  return edits
}

const mark = '{"type":"ephemeral"}'

function blockOf(textSource: string): string {
  return `[{"type":"text","text":${textSource},"cache_control":${mark}}]`
}

function listAt(body: ClientBody, field: string): Range[] {
  return body.isArray(field) ? elementsOf(body.bytes, body.member(field)!) : []
}

function markLast(body: ClientBody, blocks: readonly Range[]): Edit[] {
  const last = blocks.at(-1)
  if (last === undefined || body.bytes[last.start] !== 0x7b) return []
  return setMembers(last, body.membersAt(last), new Map([['cache_control', mark]]))
}

function markContent(body: ClientBody, message: Range): Edit[] {
  const content = body.membersAt(message).findLast(({ key }) => key === 'content')
  if (content === undefined) return []
  if (body.bytes[content.start] === 0x5b) return markLast(body, elementsOf(body.bytes, content))
  const source = memberText(body.bytes, content)
  // This wire refuses a mark on an empty text.
  if (body.bytes[content.start] !== 0x22 || source === '""') return []
  return [{ start: content.start, end: content.end, text: blockOf(source) }]
}

/** Whether a tool is deferred (the model does not see it at first). It must have no cache mark. */
function isDeferred(body: ClientBody, tool: Range): boolean {
  return memberAt(body, tool, 'defer_loading') === 'true'
}

function roleOf(body: ClientBody, message: Range): string {
  return memberAt(body, message, 'role')?.slice(1, -1) ?? ''
}

/** The source text of a member of a nested object. */
function memberAt(body: ClientBody, range: Range, key: string): string | undefined {
  if (body.bytes[range.start] !== 0x7b) return undefined
  const member = body.membersAt(range).findLast((one) => one.key === key)
  return member && memberText(body.bytes, member)
}
