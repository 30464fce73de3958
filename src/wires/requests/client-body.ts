import { memberText, type Range } from '../../bytes/json.ts'
import { membersOf } from '../../bytes/json-edit.ts'
import { type JsonNode, readNodes } from '../../bytes/json-nodes.ts'
import {
  JsonError,
  type JsonMember,
  type KeptKeys,
  type Note,
  type NotedEnding,
  type NotedWord,
  type Outline,
  outlineOf,
  scanObject,
} from '../../bytes/scan.ts'
import { GatewayError } from '../../errors.ts'

/**
 * A client's body as bytes with the list of its top-level members. The whole body is checked; values are parsed only
 * on demand. No member occurs twice (ruling Y12), and `null` counts as absent (ruling R7).
 */
export class ClientBody {
  readonly bytes: Buffer
  readonly members: readonly JsonMember[]
  readonly #byKey = new Map<string, JsonMember>()
  readonly #notes = new Set<Note>()
  readonly #keys: KeptKeys | undefined

  /**
   * @param keys the keys whose values are kept as source text, if the body is decoded later
   * @throws GatewayError 400 `invalid_body` if the bytes are not one JSON object (spec 7.3), or a member occurs twice
   */
  constructor(bytes: Buffer, keys?: KeptKeys) {
    this.bytes = bytes
    this.#keys = keys
    this.members = readMembers(() => scanObject(bytes, undefined, { notes: this.#notes, keys }))
    for (const member of this.members) {
      if (this.#byKey.has(member.key)) throw repeated(member.key.slice(0, 64))
      this.#byKey.set(member.key, member)
    }
  }

  /** The range of the outermost object. */
  get range(): Range {
    return { start: this.bytes.indexOf(0x7b), end: this.bytes.lastIndexOf(0x7d) + 1 }
  }

  member(key: string): JsonMember | undefined {
    const member = this.#byKey.get(key)
    if (member === undefined || this.bytes[member.start] === 0x6e) return undefined
    return member
  }

  has(key: string): boolean {
    return this.member(key) !== undefined
  }

  /**
   * Whether any ASCII letter, digit or sign is written as `\u00…`. Ordinary clients never do that, so such a body may
   * hide something.
   */
  get hasEscapedLetters(): boolean {
    return this.#notes.has('escaped letter')
  }

  /**
   * Whether any string of this body may be a data URL. If false, the translated body can have data URLs only inside
   * texts, such as the arguments of a tool call.
   */
  get mayHoldDataUrl(): boolean {
    return this.#notes.has('data:…') || this.hasEscapedLetters
  }

  /** Whether the body contains this word as a whole string, key or value, written without escapes. */
  holdsString(word: NotedWord): boolean {
    return this.#notes.has(word)
  }

  /** Whether any string of the body ends with this text. Keys and values count if they are written without escapes. */
  holdsEnding(ending: NotedEnding): boolean {
    return this.#notes.has(`…${ending}`)
  }

  /** The first byte of the value, which shows its type; undefined if the member is absent or null. */
  firstByte(key: string): number | undefined {
    const member = this.member(key)
    return member && this.bytes[member.start]
  }

  isArray(key: string): boolean {
    return this.firstByte(key) === 0x5b
  }

  isString(key: string): boolean {
    return this.firstByte(key) === 0x22
  }

  isObject(key: string): boolean {
    return this.firstByte(key) === 0x7b
  }

  /** The parsed value of a member. Use it for small fields only. */
  value(key: string): unknown {
    const member = this.member(key)
    return member && this.parse(member)
  }

  /** The value of a field as a tree, in which repeated members are kept; undefined if the field is absent. */
  nodes(field: string): JsonNode | undefined {
    const place = this.member(field)
    return place && readNodes(this.bytes, place)
  }

  /** The parsed value of a node. */
  parse(node: Range): unknown {
    return JSON.parse(this.bytes.toString('utf8', node.start, node.end))
  }

  /**
   * Returns the parsed values of a nested member. A repeated member has one value for each occurrence (ruling Y12). The
   * list is empty if the field is no object or lacks the member.
   * @throws GatewayError 400 `invalid_body` if there are more members than the limit (B21)
   */
  valuesInside(field: string, key: string): unknown[] {
    const place = this.member(field)
    if (place === undefined || !this.isObject(field)) return []
    const members = this.membersAt(place).filter((one) => one.key === key)
    return members.map((member) => JSON.parse(memberText(this.bytes, member)))
  }

  /**
   * The members of a nested object.
   * @throws GatewayError 400 `invalid_body` if there are more members than the limit (B21)
   */
  membersAt(range: Range): JsonMember[] {
    return readMembers(() => membersOf(this.bytes, range))
  }

  /** The whole body as input for `JSON.parse`. A placeholder replaces each value that is kept as source text. */
  outline(keys: KeptKeys): Outline {
    return outlineOf(this.bytes, this.#keys ?? keys, this.members)
  }

  text(): string {
    return this.bytes.toString('utf8')
  }
}

/** Makes the error for a repeated member. @param param the member's decoded name, or the beginning of a long name */
function repeated(param: string): GatewayError {
  return new GatewayError('invalid_body', `The field ${param} occurs twice in the request body: send it once.`, {
    param,
  })
}

function readMembers(read: () => JsonMember[]): JsonMember[] {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new GatewayError('invalid_body', `The request body ${error.message}: send one JSON object in UTF-8.`)
  }
}
