import type { Serving } from './model.ts'
import { compile } from './routing-fields.ts'

/** How a vendor dates or numbers an edition: `-2024-08-06`, `@20250929`, `-0613`, `-250615`, `-08-2024`, `-05-06`, `-002`. */
const edition = /[-@](?:\d{4}-\d\d-\d\d|\d\d-\d{4}|\d\d-\d\d|\d{8}|\d{6}|\d{4}|\d{3})$/
/** Suffixes that a host adds to that, and suffixes that replace it for the newest edition or a way to serve it. */
const revision = /-v\d+:\d+$/
const undated = /(?:-latest|-0|:[a-z]+)$/

/**
 * Whether an answer that names this model is by the one that was asked for (ruling Y13). That is the upstream's name for it in any
 * case, or a dated form of that. A vendor or a path may stand before either. A name of the profile counts too. Two
 * dates are two models.
 */
export function isAnsweredBy(name: string, served: Pick<Serving, 'upstreamModel' | 'profile'>): boolean {
  if (name === served.upstreamModel) return true
  const [told = '', asked = ''] = [name, served.upstreamModel].map((one) => one.toLowerCase().replace(revision, ''))
  const { answerNames } = served.profile
  return isForm(told, asked) || isForm(told, asked.replace(undated, '')) || compile(answerNames).test(name)
}

function isForm(told: string, asked: string): boolean {
  return isTail(told, asked) || isTail(told.replace(edition, ''), asked) || isTail(told, asked.replace(edition, ''))
}

/** Whether one is the other, or all of it after a slash, or after the dot of a vendor (`us.anthropic.claude-…`). */
function isTail(one: string, other: string): boolean {
  const [long, short] = one.length < other.length ? [other, one] : [one, other]
  if (!long.endsWith(short) || short === '') return false
  const before = long.slice(0, long.length - short.length)
  return before === '' || before.endsWith('/') || /^(?:[a-z]+\.)+$/.test(before)
}
