import { BookError } from './book-error.ts'
import type { BookChange, BookWrite, Facts, Made } from './book-rules.ts'
import { formatTime } from './calendar.ts'
import { isClockRight } from './clock.ts'
import { type Act, auditRow } from './trail.ts'

/** For this time, in ms, a repeated `Idempotency-Key` returns the first result and creates nothing. */
export const onceMs = 24 * 3_600_000

/**
 * Adds to a change the parts that belong in the same commit: its record in the audit trail, and its stored result. If
 * the same creation is requested again, the stored result is returned.
 */
export function onBehalf<T>(act: Act, { about, decide }: BookChange<T>, nowMs: number): BookChange<T> {
  const { actor, once } = act
  return {
    about: once ? { ...about, once: { actor, key: once.key } } : about,
    decide(facts) {
      const made = once && facts.made && nowMs < facts.made.madeMs + onceMs ? facts.made : undefined
      if (once && made) {
        if (made.asked !== once.asked) throw new BookError('once_mismatch', once.key)
        return { writes: [], result: read(made.result) as T }
      }
      const { writes, result, trail, parts = [], isAct } = decide(facts)
      if (writes.length === 0 && !isAct) return { writes, result }
      if (writes.some(({ kind }) => kind === 'post_credit')) refuseDoubt(facts, act)
      const more: BookWrite[] = []
      for (const one of trail ? [...parts, trail] : [])
        more.push({ kind: 'post_audit', row: auditRow(act, one), nowMs })
      if (once) more.push({ kind: 'insert_made', actor, key: once.key, made: toMade(once.asked, result, nowMs) })
      return { writes: [...writes, ...more], result }
    },
  }
}

/** Refuses to post a credit while the clock that dates entries is wrong (ruling Y15). */
function refuseDoubt({ clock, nowMs }: Facts, { expectedMs }: Act): void {
  if (!isClockRight(clock!, expectedMs)) throw new BookError('clock_doubtful', formatTime(nowMs)!)
}

/** The names of secret members of results. Secrets must not be shown twice. */
const secrets = new Set(['key', 'token', 'digest'])

/** The member whose own members people name, so that these may have any name. Its values are never secret. */
const named = 'metadata'

function toMade(asked: string, result: unknown, madeMs: number): Made {
  let metadata: unknown
  const text = JSON.stringify({ result }, function (this: unknown, name, value) {
    if (name === named && typeof value === 'object') metadata = value
    if (secrets.has(name) && typeof value === 'string' && this !== metadata) return undefined
    return typeof value === 'bigint' ? { nanos: value.toString() } : value
  })
  return { asked, result: text, madeMs }
}

function read(text: string): unknown {
  // A budget without a period has only the member `nanos` too, but there it is an amount that was already read.
  const isAmount = (value: unknown): value is { nanos: string } =>
    typeof value === 'object' &&
    value !== null &&
    Object.keys(value).join() === 'nanos' &&
    typeof (value as { nanos: unknown }).nanos === 'string'
  return JSON.parse(text, (name, value) => (name !== named && isAmount(value) ? BigInt(value.nanos) : value)).result
}
