import type { Case, Wire } from './case.ts'
import { wires } from './case.ts'
import type { Result } from './report.ts'
import type { Subject } from './run.ts'
import { runCase } from './run-case.ts'

/*
 * Checks before a run whether the gateway answers, accepts the key, and asks the models. Otherwise a run would report
 * the same failure hundreds of times.
 */

/**
 * Returns the reason why nothing answers at an address. Any answer is enough. A redirect is one, and is not followed.
 */
export async function whyUnreachable(origin: string, limitMs = 10_000): Promise<string | undefined> {
  try {
    const response = await fetch(origin, { redirect: 'manual', signal: AbortSignal.timeout(limitMs) })
    await response.body?.cancel()
    return undefined
  } catch (error) {
    const { message, cause, name } = error as Error
    if (name === 'TimeoutError') return `no answer in ${limitMs / 1_000} s`
    return (cause as Error)?.message ?? message
  }
}

/** A question that a gateway passes on if its key and its models are right. */
const greeting = {
  id: 'greeting',
  client: { '*': { steps: [{ request: { ask: { text: 'Hello', maxTokens: 100 } } }] } },
  model: { '*': { exchanges: [{ reply: { answer: { text: 'Hello.' } } }] } },
  timeLimitMs: 5_000,
} as unknown as Case

/**
 * Asks each model on one client wire after the other, until the gateway has asked it. Without `models` it asks an
 * endpoint, which needs one answer.
 * @returns a text about models that were not reached, empty if all were; and whether no model was reached
 */
export async function askOnce(
  subject: Subject,
  models: readonly Wire[] | undefined,
): Promise<{ failed: string; isAll: boolean }> {
  const failed: string[] = []
  for (const model of models ?? (['chat'] as const)) {
    const answers = await collectRefusals(subject, model, models !== undefined)
    failed.push(...answers.slice(0, models ? 1 : 3))
  }
  const isAll = failed.length >= (models?.length ?? 1)
  if (failed.length === 0) return { failed: '', isAll: false }
  const head = models ? 'The gateway does not ask the model:' : 'The endpoint gives no answer:'
  const cure = !models
    ? 'Check --key and --model.'
    : isAll
      ? 'Check --key, and that the models above are configured.'
      : 'Configure it, or leave it out with --wires.'
  return { failed: [head, ...failed.map((text) => `  ${text}`), cure].join('\n'), isAll }
}

/** Asks a model by one wire of the client after the other. @returns the answers in words, empty if one is as it should be */
async function collectRefusals(subject: Subject, model: Wire, isScripted: boolean): Promise<string[]> {
  const names = subject.names(model, 1)
  const answers: string[] = []
  for (const client of [model, ...wires.filter((wire) => wire !== model)]) {
    const trace = await runCase(greeting, { client, model }, { ...subject, lane: 1, names } as never)
    const { status, raw } = trace.steps[0]!
    if (isScripted ? trace.asked.length > 0 : status === 200) return []
    answers.push(`${names.client} on ${client}: ${status || 'no answer'} ${raw.slice(0, 200)}`.trim())
  }
  return answers
}

/** Whether a case failed because the model was not asked, for example because the gateway rests it after a failure. */
export function isKeptAway({ verdict, differences }: Result): boolean {
  return verdict === 'fail' && differences.some((text) => text.startsWith('model: requests is 0'))
}

export const advice = `
In many cases that failed, the model was not asked. If the gateway rests a model or a provider that failed, or limits requests,
switch that off. If it cannot be switched off, use --lanes 120, and give each model a provider of its own.`
