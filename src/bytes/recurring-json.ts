import { randomBytes } from 'node:crypto'
import { endOfString } from './json.ts'
import { ownCopy } from './own-copy.ts'

/** Longer texts are no deltas. In UTF-16 units. */
const learnedMax = 2_048

/** So many times in a row two texts are compared in vain; their writer numbers them, or changes several things at once. */
const vainMax = 3

/** Drawn anew by every process: a string of this text alone shows where the one that changes stands. */
const probe = `probe-${randomBytes(9).toString('base64url')}`

/** What is not what it looks like in a string, or ends it. */
const special = /["\\\u0000-\u001f]/

/** What stands around the string that changes, quotes included; and the way to it, from the outermost value on. */
type Shape = { start: string; end: string; way: { parent: Members; key: string }[] }

type Members = Record<string, unknown>

/**
 * Parses the texts of a stream, most of which say what the one before said, but for one string: that string is cut out, and
 * what lies on the way to it is copied, for a fifth of what parsing takes. Every value is as `JSON.parse` has it; what lies
 * beside the way is shared by several of them, so that none may be written to (decision 61).
 */
export class RecurringJson {
  #shape: Shape | undefined
  /** Parsed, and to be compared with the next. */
  #last = ''
  #vain = 0

  /** @throws SyntaxError as JSON.parse does */
  parse(text: string): unknown {
    const known = this.#shape && fill(this.#shape, text)
    if (known !== undefined) {
      this.#vain = 0
      return known
    }
    const value: unknown = JSON.parse(text)
    if (this.#vain < vainMax && text.length <= learnedMax) this.#learn(text)
    return value
  }

  /** Nothing is parsed for a while: lets go of the piece that the last text was cut out of. */
  compact(): void {
    this.#last = ownCopy(this.#last)
  }

  #learn(text: string): void {
    const last = this.#last
    this.#last = text
    if (last === '' || last === text) return
    this.#shape = shapeOf(last, text)
    if (this.#shape) this.#last = ''
    else if (++this.#vain === vainMax) this.#last = ''
  }
}

function fill({ start, end, way }: Shape, text: string): unknown {
  const endsAt = text.length - end.length
  if (endsAt < start.length || text.slice(0, start.length) !== start || text.slice(endsAt) !== end) return undefined
  const inner = text.slice(start.length, endsAt)
  let value: unknown = special.test(inner) ? parsed(`"${inner}"`) : inner
  if (value === undefined) return undefined
  for (let i = way.length - 1; i >= 0; i--) {
    const { parent, key } = way[i]!
    const copy = (Array.isArray(parent) ? parent.slice() : { ...parent }) as Members
    // Of a member `__proto__` as well: the copy has it as its own already.
    copy[key] = value
    value = copy
  }
  return value
}

/** That of two texts which differ in one string, and in nothing else. */
function shapeOf(last: string, text: string): Shape | undefined {
  let same = 0
  while (same < text.length && text.charCodeAt(same) === last.charCodeAt(same)) same++
  const opens = text.lastIndexOf('"', same - 1)
  const closes = endOfString(text, opens)
  const [start, end] = [text.slice(0, opens + 1), text.slice(closes)]
  // Mostly they differ in more, and this tells so for less than the parse below.
  if (last.slice(endOfString(last, opens)) !== end) return undefined
  // The string is a value as it stands, or this is found nowhere: in a key, behind an escape, under a key that comes again.
  const way = wayTo(parsed(start + probe + end))
  return way && { start: ownCopy(start), end: ownCopy(end), way }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function wayTo(value: unknown): Shape['way'] | undefined {
  if (value === probe) return []
  if (typeof value !== 'object' || value === null) return undefined
  const parent = value as Members
  for (const key of Object.keys(parent)) {
    const rest = wayTo(parent[key])
    if (rest) return [{ parent, key }, ...rest]
  }
  return undefined
}
