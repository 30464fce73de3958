import type { Serving } from './model.ts'
import { compile } from './routing-fields.ts'

/**
 * How vendors date or number an edition: `-2024-08-06`, `@20250929`, `-0613`, `-250615`, `-08-2024`, `-05-06`, `-002`.
 */
const edition = /[-@](?:\d{4}-\d\d-\d\d|\d\d-\d{4}|\d\d-\d\d|\d{8}|\d{6}|\d{4}|\d{3})$/
/**
 * `revision`: a suffix that a host adds after the edition. `undated`: a suffix in place of the edition, for the newest
 * edition or for a way to serve the model.
 */
const revision = /-v\d+:\d+$/
const undated = /(?:-latest|-0|:[a-z]+)$/

/**
 * Whether an answer with this model name comes from the requested model (ruling Y13). It does if the name equals the
 * upstream's name for the model. Case, the edition, and a vendor or a path before either name do not matter, but two
 * different editions mean two models. Names that the profile lists are accepted too.
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

/** Whether one name is the other, or its end after a slash or a vendor's dot (`us.anthropic.claude-…`). */
function isTail(one: string, other: string): boolean {
  const [long, short] = one.length < other.length ? [other, one] : [one, other]
  if (!long.endsWith(short) || short === '') return false
  const before = long.slice(0, long.length - short.length)
  return before === '' || before.endsWith('/') || /^(?:[a-z]+\.)+$/.test(before)
}
