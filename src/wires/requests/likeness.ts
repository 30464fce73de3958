import type { Range } from '../../bytes/json.ts'
import { endOfString } from '../../bytes/json-edit.ts'
import type { Likeness } from '../../inference/likeness.ts'
import type { ClientHalf } from '../wire.ts'
import type { ClientBody } from './client-body.ts'

/** A digest that is read from a copy, so that more input can be added later. Node's digests have these methods. */
export type RunningDigest = {
  update(data: Uint8Array | string, encoding?: 'latin1'): unknown
  copy(): { digest(encoding: 'base64url'): string }
}

/** The most bytes of a request that are digested. */
const digestedMax = 262_144

/**
 * The bytes of about 512 tokens. No provider caches a smaller prompt (Anthropic’s smallest is 512 tokens, prompt
 * caching page, November 2026).
 */
const cachedMin = 2_048

/** The members that are cache marks. They are not digested, because clients move them from turn to turn. */
const marks = ['cache_control', 'prompt_cache_breakpoint'] as const
const markPatterns = marks.map((name) => {
  const member = `"${name}"\\s*:\\s*(?:\\{[^{}]*\\}|[^,{}\\[\\]"]+|"[^"\\\\]*")`
  return new RegExp(`,\\s*${member}|${member}\\s*,?`, 'g')
})

/**
 * The last part of the name of each mark, from its last underscore. Underscores are rare in texts, while every JSON
 * string begins with a quote. So a search for this part is twenty times as fast as a search for the whole name.
 */
const markEnds = marks.map((name) => Buffer.from(`${name.slice(name.lastIndexOf('_'))}"`))

/** The roles of turns with instructions for the model, on all wires. */
const operators: ReadonlySet<unknown> = new Set(['system', 'developer'])

/**
 * Computes the likeness of a request: digests of its beginning, by which similar requests are found. Cache marks are
 * left out.
 * @param digest a digest keyed by the account and a secret of this gateway and its replicas
 */
export function readLikeness(
  { request }: ClientHalf,
  body: ClientBody,
  digest: RunningDigest,
  tokens: number,
): Likeness {
  let left = digestedMax
  for (const field of ['tools', 'functions']) add(body.member(field))
  const tools = tellDigest(digest)
  for (const field of ['system', 'instructions']) add(body.member(field))
  const { field } = request.conversation
  const turns = body.isArray(field) ? turnsOf(body, body.member(field)!) : []
  let preamble: string | undefined
  let isSmall = false
  for (const turn of turns) {
    const role = roleOf(body, turn)
    if (!operators.has(role)) endPreamble()
    add(turn)
    if (role === 'user' || left <= 0) break
  }
  endPreamble()
  if (!body.isArray(field)) add(body.member(field))
  return { tools, preamble: preamble!, opener: tellDigest(digest), isSmall, tokens }

  function endPreamble(): void {
    if (preamble !== undefined) return
    preamble = tellDigest(digest)
    isSmall = digestedMax - left < cachedMin
  }

  function add(range: Range | undefined): void {
    // This byte is written before each part, even if the part is absent. Otherwise requests with the same text in
    // different parts would have the same digest.
    digest.update('\u0000')
    if (range === undefined || left <= 0) return
    const bytes = body.bytes.subarray(range.start, Math.min(range.end, range.start + left))
    left -= bytes.length
    if (markEnds.every((end) => !bytes.includes(end))) digest.update(bytes)
    else
      digest.update(
        markPatterns.reduce((text, pattern) => text.replace(pattern, ''), bytes.toString('latin1')),
        'latin1',
      )
  }
}

/** The digest of the input so far. More input may follow. */
function tellDigest(digest: RunningDigest): string {
  return digest.copy().digest('base64url').slice(0, 22)
}

function roleOf(body: ClientBody, turn: Range): unknown {
  if (body.bytes[turn.start] !== 0x7b) return undefined
  const role = body.membersAt(turn).find(({ key }) => key === 'role')
  return role && body.parse(role)
}

/** Yields the elements of an array one by one, so that a long conversation is read only up to the first user turn. */
function* turnsOf({ bytes }: ClientBody, range: Range): Iterable<Range> {
  let depth = 0
  let start = -1
  for (let at = range.start + 1; at < range.end; at++) {
    const byte = bytes[at]!
    if (byte === quote) {
      if (start < 0) start = at
      at = endOfString(bytes, at)
    } else if (byte === 0x7b || byte === 0x5b) {
      if (start < 0) start = at
      depth++
    } else if (byte === 0x7d || byte === 0x5d) {
      if (--depth === 0) {
        yield { start, end: at + 1 }
        start = -1
      }
    } else if (start < 0 && byte > 0x20 && byte !== 0x2c) start = at
    if (start >= 0 && (depth < 0 || (depth === 0 && byte === 0x2c))) {
      yield { start, end: at }
      start = -1
    }
  }
}

const quote = 0x22
