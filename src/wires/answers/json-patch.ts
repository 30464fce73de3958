import { asObject, type Edit, type Range, splice } from '../../bytes/json.ts'
import { elementsOf, membersOf, setMembers } from '../../bytes/json-edit.ts'
import { type JsonMember, type KeptKeys, parseUpstreamJson, scanObject } from '../../bytes/scan.ts'
import { readCount } from '../../inference/usage.ts'

/**
 * The member that is skipped when an answer is parsed. Log probabilities take dozens of JSON tokens per token of text,
 * and no code reads them.
 */
const unread: KeptKeys = { containers: ['logprobs'], texts: [] }

/** A JSON text whose members can be replaced in place. All other bytes stay the same. */
export class JsonPatch {
  readonly bytes: Buffer
  /** The value of the parsed text, in which null replaces log probabilities. */
  readonly value: Record<string, unknown>
  /** The outermost members, in order. */
  readonly members: readonly JsonMember[]
  /** The new values of each object, by the object's path joined with `/`. All values for one object form one edit. */
  readonly #values = new Map<string, { path: readonly string[]; values: Map<string, string | undefined> }>()
  /**
   * The elements of lists, and the members of objects, by the position where the list or object begins. Both maps are
   * kept for further edits.
   */
  #elements: Map<number, Range[]> | undefined
  #inner: Map<number, JsonMember[]> | undefined

  /**
   * Scans the text once, and parses it without log probabilities, which can make an event megabytes long (B5).
   * @param inside the outermost member whose inner members will be set; undefined if none will be
   * @throws if the text is not one JSON object, or is too large even without log probabilities
   */
  constructor(bytes: Buffer, inside?: string) {
    this.bytes = bytes
    const found: Range[] = []
    this.members = scanObject(bytes, noLimits, { inside, keys: unread, found })
    const unreads = found.map(({ start, end }) => ({ start, end, text: 'null' }))
    const read = unreads.length === 0 ? bytes : splice(bytes, unreads)
    this.value = parseUpstreamJson(read) as Record<string, unknown>
  }

  /**
   * Sets members of the object at a path of keys and list positions; undefined removes a member. A path that does not
   * exist is ignored.
   */
  set(path: readonly string[], values: ReadonlyMap<string, string | undefined>): void {
    if (values.size === 0) return
    const id = path.join('/')
    const place = this.#values.get(id) ?? { path, values: new Map() }
    for (const [key, value] of values) place.values.set(key, value)
    this.#values.set(id, place)
  }

  /**
   * Sets the counters of `wanted` that are missing or invalid in the object at the path (ruling C6). Nested objects are
   * handled too.
   * @param isBelieved if false, valid counters are replaced as well, because clients see only billed figures
   */
  setMissing(path: readonly string[], wanted: Wanted, isBelieved = true): void {
    let there: Record<string, unknown> | undefined = this.value
    for (const key of path) there = asObject(there?.[key])
    if (there === undefined) {
      this.set(path.slice(0, -1), new Map([[path.at(-1)!, JSON.stringify(wanted)]]))
      return
    }
    const missing = new Map<string, string>()
    for (const name of Object.keys(wanted)) {
      const want = wanted[name]!
      if (typeof want === 'object' && asObject(there[name])) this.setMissing([...path, name], want, isBelieved)
      else if (!isBelieved || typeof want === 'object' || readCount(there[name]) === undefined)
        missing.set(name, JSON.stringify(want))
    }
    this.set(path, missing)
  }

  get isEdited(): boolean {
    return this.#values.size > 0
  }

  result(): Buffer {
    return splice(this.bytes, this.edits())
  }

  edits(): Edit[] {
    return [...this.#values.values()].flatMap(({ path, values }) => this.#editsAt(path, values))
  }

  /** Returns the elements of the list at this range. */
  elementsAt(range: Range): Range[] {
    const known = this.#elements?.get(range.start) ?? elementsOf(this.bytes, range)
    this.#elements = (this.#elements ?? new Map()).set(range.start, known)
    return known
  }

  /** Returns the members of the value at this range; an empty list if the value is not an object. */
  membersAt(range: Range): JsonMember[] {
    if (this.bytes[range.start] !== 0x7b) return []
    const known = this.#inner?.get(range.start) ?? membersOf(this.bytes, range, noLimits)
    this.#inner = (this.#inner ?? new Map()).set(range.start, known)
    return known
  }

  #editsAt(path: readonly string[], values: ReadonlyMap<string, string | undefined>): Edit[] {
    let range: Range = { start: this.bytes.indexOf(0x7b), end: this.bytes.lastIndexOf(0x7d) + 1 }
    let members: readonly JsonMember[] = this.members
    for (const key of path) {
      const isList = this.bytes[range.start] === 0x5b
      const inner: (Range & { members?: JsonMember[] }) | undefined = isList
        ? this.elementsAt(range)[Number(key)]
        : members.findLast((one) => one.key === key)
      if (inner === undefined) return []
      range = { start: inner.start, end: inner.end }
      members = inner.members ?? this.membersAt(range)
    }
    if (this.bytes[range.start] !== 0x7b) return []
    return setMembers(range, members, values)
  }
}

/**
 * The receiver has already limited the answer's size. Log probabilities alone can be millions of tokens, so no limit
 * applies here (B5).
 */
const noLimits = { tokensMax: Number.POSITIVE_INFINITY, membersMax: Number.POSITIVE_INFINITY }

/** The counters that a usage object must have, by name. Some are in nested objects. */
export type Wanted = { readonly [name: string]: number | Wanted }
