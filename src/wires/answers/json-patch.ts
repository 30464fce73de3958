import { asObject, type Edit, type JsonMember, scanObject, splice } from '../../bytes/json.ts'
import { membersOf, setMembers } from '../../bytes/json-edit.ts'
import { readCount } from '../../inference/usage.ts'

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
