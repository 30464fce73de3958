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
 * A client's body as bytes and the list of its top-level members: checked whole, parsed only where it is asked for.
 * No member occurs twice (ruling Y12); `null` counts as absent (ruling R7).
 */
export class ClientBody {
  readonly bytes: Buffer
  readonly members: readonly JsonMember[]
  readonly #byKey = new Map<string, JsonMember>()
  readonly #notes = new Set<Note>()
  readonly #keys: KeptKeys | undefined

  /**
   * @param keys of its wire, if the body may have to be decoded: the scan finds their values by the way
   * @throws GatewayError 400 `invalid_body` when the bytes are not one JSON object (spec 7.3), or a member of it occurs twice.
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

  /** A letter, digit or sign of ASCII is written as `\\u00…` somewhere, which nobody does who has nothing to hide. */
  get hasEscapedLetters(): boolean {
    return this.#notes.has('escaped letter')
  }

  /** Whether this stands anywhere in it as a whole string, key or value, written without escapes. */
  holdsString(word: NotedWord): boolean {
    return this.#notes.has(word)
  }

  /** Whether any string in it ends so, key or value, written without escapes there. */
  holdsEnding(ending: NotedEnding): boolean {
    return this.#notes.has(`…${ending}`)
  }

  /** First byte of the value, which tells its type; undefined when absent or null. */
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

  /** The parsed value; for small fields. */
  value(key: string): unknown {
    const member = this.member(key)
    return member && this.parse(member)
  }

  /** A field and all that is in it, repeated members too; undefined where it is absent. */
  nodes(field: string): JsonNode | undefined {
    const place = this.member(field)
    return place && readNodes(this.bytes, place)
  }

  /** The parsed value of a node. */
  parse(node: Range): unknown {
    return JSON.parse(this.bytes.toString('utf8', node.start, node.end))
  }

  /**
   * The parsed values of one member of an object field, each time that it occurs (ruling Y12). The list is empty if the
   * field is no object or lacks the member. An object of thousands of members is not built for one of them.
   * @throws GatewayError 400 `invalid_body` when they are more than are kept track of (B21).
   */
  valuesInside(field: string, key: string): unknown[] {
    const place = this.member(field)
    if (place === undefined || !this.isObject(field)) return []
    const members = this.membersAt(place).filter((one) => one.key === key)
    return members.map((member) => JSON.parse(memberText(this.bytes, member)))
  }

  /**
   * The members of an object inside.
   * @throws GatewayError 400 `invalid_body` when they are more than are kept track of (B21).
   */
  membersAt(range: Range): JsonMember[] {
    return readMembers(() => membersOf(this.bytes, range))
  }

  /** The whole body for `JSON.parse`, with tokens in the place of the values under the kept keys of its wire. */
  outline(keys: KeptKeys): Outline {
    return outlineOf(this.bytes, this.#keys ?? keys, this.members)
  }

  text(): string {
    return this.bytes.toString('utf8')
  }
}

/** @param param the name, decoded, or the beginning of a long one */
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
