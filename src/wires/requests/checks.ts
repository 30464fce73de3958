import { asObject } from '../../bytes/json.ts'
import { elementsOf } from '../../bytes/json-edit.ts'
import { GatewayError } from '../../errors.ts'
import type { ClientHalf } from '../wire.ts'
import type { ClientBody } from './client-body.ts'
import { invalidField, wrongType } from './refusals.ts'

/*
 * Checks of every request before an upstream is chosen, whatever the model's wire (rulings R9, R10). If client and
 * model share a wire, the model judges everything else. Decoders rely on these checks and do not repeat them.
 */

/** Reads the name of the model. @throws GatewayError 400 if `model` is missing or not a string (spec 7.3) */
export function readModelId(body: ClientBody): string {
  if (body.isString('model')) return body.value('model') as string
  throw invalidField('model', 'The field model is required and must be a string: name a model from GET /v1/models.')
}

/** Checks the fields of a request. @throws GatewayError 400 naming the first field that breaks a rule (ruling R10) */
export function checkFields(client: ClientHalf, body: ClientBody): void {
  const { caps, isCapRequired, check } = client.request
  checkConversation(client, body)
  if (isCapRequired && !caps.some((cap) => body.has(cap))) {
    const [cap = ''] = caps
    throw invalidField(cap, `The field ${cap} is required: set it to a positive integer.`)
  }
  for (const field of caps) {
    if (!body.has(field)) continue
    const cap = body.value(field)
    if (typeof cap !== 'number' || !Number.isInteger(cap) || cap <= 0) throw wrongType(field, 'a positive integer')
  }
  if (body.has('stream') && typeof body.value('stream') !== 'boolean') throw wrongType('stream', 'true or false')
  check?.(body)
}

/** Checks the field of the conversation. @throws GatewayError 400 if it is missing or has a wrong type */
export function checkConversation(client: ClientHalf, body: ClientBody): void {
  const { field, kinds, mayBeText } = client.request.conversation
  if (body.isArray(field) || (mayBeText && body.isString(field))) return
  throw invalidField(field, `The field ${field} is required and must be ${kinds}.`)
}

/** The longest conversation key, in code points (ruling R2). */
const keyCharactersMax = 256

/**
 * Headers of agents that serve as the conversation key if the client sent neither the wire's field nor `x-session-id`
 * nor the headers of Claude Code. Such a header never causes a refusal (ruling P6).
 */
const fallbackHeaders = ['x-session-affinity', 'session-id', 'session_id']

/**
 * Returns the conversation key. The field of the wire comes first, then the header `x-session-id`, then the headers of
 * agents (spec 4.1, ruling P6).
 * @throws GatewayError 400 for a key that is too long or not a string
 */
export function readConversationKey(
  client: ClientHalf,
  body: ClientBody,
  header: (name: string) => string | undefined,
): string | undefined {
  const session = readSessionId(header)
  const field = client.request.cacheKey
  if (field !== undefined && body.has(field)) {
    if (!body.isString(field)) throw wrongType(field, 'a string')
    const key = body.value(field) as string
    checkLength(field, key)
    if (key !== '') return key
  }
  if (session) return session
  const agentSession = header('x-claude-code-session-id')
  if (agentSession) return [agentSession, header('x-claude-code-agent-id')].filter(Boolean).join('/')
  for (const name of fallbackHeaders) {
    const value = header(name)
    if (value) return value
  }
  return undefined
}

/**
 * Reads the header `x-session-id`. Headers are bytes; clients that send other characters than ASCII send UTF-8.
 * @throws GatewayError `invalid_cache_key`
 */
export function readSessionId(header: (name: string) => string | undefined): string | undefined {
  const value = header('x-session-id')
  if (value === undefined) return undefined
  const text = Buffer.from(value, 'latin1').toString('utf8')
  const session = text.includes('\ufffd') ? value : text
  checkLength('x-session-id', session)
  return session
}

/**
 * The texts with which a conversation begins: its instructions, and its turns up to the first user turn. They stay the
 * same in every later request, whatever form a client uses and wherever it places cache marks (ruling Y18).
 */
export function readOpening({ request }: ClientHalf, body: ClientBody): string {
  const { field } = request.conversation
  const opening = ['system', 'instructions'].map((name) => wordsOf(body.value(name)))
  if (body.isString(field)) return JSON.stringify([...opening, 'user', wordsOf(body.value(field))])
  for (const range of body.isArray(field) ? elementsOf(body.bytes, body.member(field)!) : []) {
    const { role, content } = asObject(body.parse(range)) ?? {}
    if (role === undefined) continue
    opening.push(String(role), wordsOf(content))
    if (role === 'user') break
  }
  return JSON.stringify(opening)
}

/** Returns the text of a string or of a list of parts. A part without text becomes JSON without its cache mark. */
function wordsOf(content: unknown): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : ''
  return content
    .map((part: unknown) => {
      const { cache_control: _, prompt_cache_breakpoint: __, ...rest } = asObject(part) ?? {}
      return typeof rest['text'] === 'string' ? rest['text'] : JSON.stringify(rest)
    })
    .join('\n')
}

/** Checks the length of a conversation key. @throws GatewayError `invalid_cache_key` (spec 7.3) */
function checkLength(param: string, key: string): void {
  if (key.length <= keyCharactersMax) return
  let characters = 0
  for (const _ of key) if (++characters > keyCharactersMax) break
  if (characters <= keyCharactersMax) return
  const message = `The conversation key in ${param} is longer than ${keyCharactersMax} characters: send a shorter one.`
  throw new GatewayError('invalid_cache_key', message, { param })
}
