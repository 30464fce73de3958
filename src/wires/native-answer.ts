import { asObject, type Edit, type JsonMember, scanObject, splice } from '../bytes/json.ts'
import { membersOf, setMembers } from '../bytes/json-edit.ts'
import type { Model } from '../catalog/model.ts'
import type { Fault } from '../inference/answer.ts'
import { readCount, type Usage, type UsageReport } from '../inference/usage.ts'
import { faultOfError, kindOfStatus } from './stream-fault.ts'

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
  readonly #members: JsonMember[]
  /** By path, joined: what is set in one object is one edit, however often it was asked for. */
  readonly #values = new Map<string, { path: readonly string[]; values: Map<string, string> }>()

  /** @throws when the text is not one JSON object. */
  constructor(bytes: Buffer) {
    this.bytes = bytes
    // Its size is bounded where it is read; log probabilities alone can be millions of tokens.
    this.#members = scanObject(bytes, Number.POSITIVE_INFINITY)
    this.value = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>
  }

  /** Sets members of the object at the path (keys from the outermost inwards). A path that leads nowhere is ignored. */
  set(path: readonly string[], values: ReadonlyMap<string, string>): void {
    if (values.size === 0) return
    const id = path.join('/')
    const place = this.#values.get(id) ?? { path, values: new Map() }
    for (const [key, value] of values) place.values.set(key, value)
    this.#values.set(id, place)
  }

  /**
   * Sets the counters that are wanted in the object at the path and are not there, or are not counts (ruling C6).
   * Wanted objects are looked into.
   * @param isBelieved false: what is there is replaced too; figures that are not billed are not shown (ruling C6).
   */
  setMissing(path: readonly string[], wanted: Wanted, isBelieved = true): void {
    const there = path.reduce<Record<string, unknown> | undefined>((value, key) => asObject(value?.[key]), this.value)
    const missing = new Map<string, string>()
    for (const [name, want] of Object.entries(wanted)) {
      if (typeof want === 'object' && asObject(there?.[name])) this.setMissing([...path, name], want, isBelieved)
      else if (!isBelieved || typeof want === 'object' || readCount(there?.[name]) === undefined)
        missing.set(name, JSON.stringify(want))
    }
    const outer = path.slice(0, -1)
    if (there === undefined) this.set(outer, new Map([[path.at(-1)!, JSON.stringify(wanted)]]))
    else this.set(path, missing)
  }

  get isEdited(): boolean {
    return this.#values.size > 0
  }

  result(): Buffer {
    const edits: Edit[] = []
    for (const { path, values } of this.#values.values()) edits.push(...this.#editsAt(path, values))
    return splice(this.bytes, edits)
  }

  #editsAt(path: readonly string[], values: ReadonlyMap<string, string>): Edit[] {
    let range = { start: this.bytes.indexOf(0x7b), end: this.bytes.lastIndexOf(0x7d) + 1 }
    let members: JsonMember[] = this.#members
    for (const key of path) {
      const member = members.findLast((candidate) => candidate.key === key)
      if (member === undefined || this.bytes[member.start] !== 0x7b) return []
      range = { start: member.start, end: member.end }
      members = membersOf(this.bytes, range)
    }
    return setMembers(range, members, values)
  }
}

/** Counters by name, in objects of objects. */
export type Wanted = { readonly [name: string]: number | Wanted }

/** The members that name and identify an answer, where the upstream's own may not be shown (rulings P2, P3). */
export function headValues(
  head: NativeHead,
  answer: Record<string, unknown>,
  prefix: string,
  mint: (requestId: string) => string,
): Map<string, string> {
  const values = new Map<string, string>()
  if (answer['model'] !== head.model.id) values.set('model', JSON.stringify(head.model.id))
  if (typeof answer['id'] !== 'string' || !answer['id'].startsWith(prefix))
    values.set('id', JSON.stringify(mint(head.requestId)))
  return values
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
  const error = object?.['error'] ?? object?.['detail'] ?? object
  const { code } = faultOfError(error)
  const said = [asObject(error)?.['message'], error, object?.['message']].find((text) => typeof text === 'string')
  return { kind: kindOfStatus(status), status, text: (said as string | undefined) ?? '', ...(code ? { code } : {}) }
}

/** The fault that a JSON body with an error tells of, or undefined. */
export function readErrorBody(body: Buffer): Fault | undefined {
  try {
    const error = asObject(JSON.parse(body.toString('utf8')))?.['error']
    return error == null ? undefined : faultOfError(error)
  } catch {
    return undefined
  }
}

/** Whether the model's own figures are the ones that were billed, so that they may stand as they came (ruling C6). */
export function isBelieved(report: UsageReport, billed: Usage): boolean {
  return !billed.estimated && !report.flags?.length
}

/** A whole answer, to be looked into and edited; or the fault that it is, or tells of. */
export function openAnswer(body: Buffer): { state: 'open'; patch: JsonPatch } | { state: 'failed'; fault: Fault } {
  let patch: JsonPatch
  try {
    patch = new JsonPatch(body)
  } catch {
    return { state: 'failed', fault: { kind: 'broken', text: 'the answer is not a JSON object' } }
  }
  const error = patch.value['error']
  return error == null ? { state: 'open', patch } : { state: 'failed', fault: faultOfError(error) }
}
