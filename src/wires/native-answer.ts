import type { Model } from '../catalog/model.ts'
import type { Fault } from '../inference/answer.ts'
import { asObject, type Edit, type JsonMember, scanObject, splice } from '../json.ts'
import { membersOf, setMembers } from '../json-edit.ts'

/** What the answer of a native model is adapted with (ruling P2). Fixed for the whole answer. */
export type NativeHead = {
  requestId: string
  model: Model
  createdSeconds: number
}

/** A JSON text whose members can be replaced in place; all else keeps its bytes. */
export class JsonPatch {
  readonly bytes: Buffer
  readonly value: Record<string, unknown>
  readonly #edits: Edit[] = []

  /** @throws when the text is not one JSON object. */
  constructor(bytes: Buffer) {
    this.bytes = bytes
    scanObject(bytes)
    this.value = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>
  }

  /** Sets members of the object at the path (keys from the outermost inwards). A path that leads nowhere is ignored. */
  set(path: readonly string[], values: ReadonlyMap<string, string>): void {
    if (values.size === 0) return
    let range = { start: this.bytes.indexOf(0x7b), end: this.bytes.lastIndexOf(0x7d) + 1 }
    let members: JsonMember[] = membersOf(this.bytes, range)
    for (const key of path) {
      const member = members.findLast((candidate) => candidate.key === key)
      if (member === undefined || this.bytes[member.start] !== 0x7b) return
      range = { start: member.start, end: member.end }
      members = membersOf(this.bytes, range)
    }
    this.#edits.push(...setMembers(range, members, values))
  }

  get isEdited(): boolean {
    return this.#edits.length > 0
  }

  result(): Buffer {
    return splice(this.bytes, this.#edits)
  }
}

/** The members that name and identify an answer, where the upstream's own may not be shown (rulings P2, P3). */
export function headValues(
  head: NativeHead,
  answer: Record<string, unknown>,
  prefix: string,
  mintedId: string,
): Map<string, string> {
  const values = new Map<string, string>()
  if (answer['model'] !== head.model.id) values.set('model', JSON.stringify(head.model.id))
  if (typeof answer['id'] !== 'string' || !answer['id'].startsWith(prefix)) values.set('id', JSON.stringify(mintedId))
  return values
}

/** The fault of an error body or event, whatever its exact shape. */
export function faultOf(error: unknown, status?: number): Fault {
  const object = asObject(error)
  const text = typeof object?.['message'] === 'string' ? object['message'] : typeof error === 'string' ? error : ''
  const code = typeof object?.['code'] === 'string' ? object['code'] : undefined
  const type = typeof object?.['type'] === 'string' ? object['type'] : undefined
  return { ...kindOf(status, code, type), text, ...(code ? { code } : {}) }
}

/** What the words of the three vendors stand for, as an HTTP status. */
const statusOfWord = new Map<string, number>([
  ['invalid_request_error', 400],
  ['invalid_prompt', 400],
  ['context_length_exceeded', 400],
  ['string_above_max_length', 400],
  ['invalid_value', 400],
  ['unsupported_parameter', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['billing_error', 402],
  ['insufficient_quota', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['slow_down', 429],
  ['overloaded_error', 529],
  ['server_is_overloaded', 529],
])

function kindOf(
  status: number | undefined,
  code: string | undefined,
  type: string | undefined,
): Pick<Fault, 'kind' | 'status'> {
  const known = status ?? statusOfWord.get(code ?? '') ?? statusOfWord.get(type ?? '')
  if (known === undefined) return { kind: 'broken' }
  return { kind: kindOfStatus(known), status: known }
}

/** Whose fault a status is (ruling U2). 404 and 405 of an inference path are judged where the path is known. */
export function kindOfStatus(status: number): Fault['kind'] {
  if (status === 400 || status === 404 || status === 413 || status === 422) return 'rejected'
  if (status === 401 || status === 402 || status === 403) return 'account'
  if (status === 429 || status === 529) return 'capacity'
  return 'broken'
}

/** The fault of an HTTP refusal with a JSON body of any vendor's shape. */
export function decodeRefusal(status: number, bodyText: string): Fault {
  let body: unknown
  try {
    body = JSON.parse(bodyText)
  } catch {
    return { kind: kindOfStatus(status), status, text: '' }
  }
  const object = asObject(body)
  const fault = faultOf(object?.['error'] ?? object?.['detail'] ?? object, status)
  return fault.text === '' && typeof object?.['message'] === 'string' ? { ...fault, text: object['message'] } : fault
}

/** How many tokens a count of produced characters stands for when the model never says: four characters a token. */
export function tokensOfCharacters(characters: number): number {
  return Math.ceil(characters / 4)
}

/** The fault that a JSON body with an error tells of, or undefined. */
export function readErrorBody(body: Buffer): Fault | undefined {
  try {
    const error = asObject(JSON.parse(body.toString('utf8')))?.['error']
    return error == null ? undefined : faultOf(error)
  } catch {
    return undefined
  }
}
