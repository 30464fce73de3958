import type { RequestOutcome } from '../accounts/ledger.ts'
import type { CallRecord } from './record.ts'

/** The answers that are judged, and the fewest that say anything. */
const [answersMax, answersMin] = [20, 5]

/** Outcomes that say nothing about the model are not listed: its client left, was refused, or was cut by our own drain. */
const isFailure: Partial<Record<RequestOutcome, boolean>> = {
  ok: false,
  upstream_error: true,
  upstream_cut: true,
  upstream_stall: true,
}

/** The last answers of a model or of one upstream account for it: a bit for each, 1 if it failed. */
type AnswerBits = { bits: number; count: number }

/**
 * Judges models and upstream accounts by their last answers (CON-8). A model of which at least half failed is failing, whatever
 * cooldowns say. Its only account never cools for failures that may pass, and is ready although no client gets an answer. A model
 * is judged by what its clients got, an account by its own attempts. Only answers of this process count.
 */
export class LastAnswers {
  /** By model, and then by upstream and account; the model itself has the key ''. */
  readonly #models = new Map<string, Map<string, AnswerBits>>()

  readonly note = ({ walk, model, outcome = 'ok', tries = [] }: CallRecord): void => {
    if (walk !== 'infer' || model === undefined) return
    const answers = this.#models.get(model) ?? new Map<string, AnswerBits>()
    if (answers.size === 0) this.#models.set(model, answers)
    const hasFailed = isFailure[outcome]
    if (hasFailed !== undefined) add(answers, '', hasFailed)
    for (const [at, { upstream, account }] of tries.entries()) {
      const after = tries[at + 1]
      // A repetition at the same account is no answer of its own.
      if (after && after.upstream === upstream && after.account === account) continue
      // An attempt that another one followed has failed.
      const isBad = at < tries.length - 1 || hasFailed
      if (isBad !== undefined) add(answers, keyOf(upstream, account), isBad)
    }
  }

  isFailing(model: string): boolean {
    return judge(this.#models.get(model)?.get(''))
  }

  isServiceFailing(model: string, upstream: string, account: string | undefined): boolean {
    return judge(this.#models.get(model)?.get(keyOf(upstream, account)))
  }
}

function keyOf(upstream: string, account: string | undefined): string {
  return `${upstream} ${account ?? ''}`
}

function add(answers: Map<string, AnswerBits>, key: string, hasFailed: boolean): void {
  const known = answers.get(key)
  if (!known) {
    answers.set(key, { bits: Number(hasFailed), count: 1 })
    return
  }
  known.bits = ((known.bits << 1) | Number(hasFailed)) & (2 ** answersMax - 1)
  known.count = Math.min(answersMax, known.count + 1)
}

function judge(answers: AnswerBits | undefined): boolean {
  if (!answers || answers.count < answersMin) return false
  let failed = 0
  for (let { bits } = answers; bits > 0; bits >>= 1) failed += bits & 1
  return 2 * failed >= answers.count
}
