import { sha256Base62 } from '../../digest.ts'
import { asObject } from '../../json.ts'
import { faultOf, headValues, JsonPatch, type NativeHead, tokensOfCharacters } from '../native-answer.ts'
import type { WholeAnswer } from '../relay.ts'
import { decodeUsage, encodeUsage } from './usage.ts'

/** An id for an answer whose upstream gave none with the wire's prefix (ruling P3). */
export function mintedCompletionId(requestId: string): string {
  return `chatcmpl-${sha256Base62(`${requestId}/answer`, 24)}`
}

/** A chat model's whole answer for a chat client (ruling P2). */
export function readAnswer(body: Buffer, head: NativeHead): WholeAnswer {
  let patch: JsonPatch
  try {
    patch = new JsonPatch(body)
  } catch {
    return { fault: { kind: 'broken', text: 'the answer is not a JSON object' } }
  }
  const answer = patch.value
  if (answer['error'] != null) return { fault: faultOf(answer['error']) }
  const choices = answer['choices']
  if (!Array.isArray(choices) || choices.length === 0) {
    return { fault: { kind: 'broken', text: 'the answer has no choices' } }
  }
  const usage = asObject(answer['usage'])
  return {
    report: decodeUsage(usage ?? asObject(choices[0])?.['usage'], head.model.profile.usageQuirk),
    estimateOutput: () => tokensOfCharacters(choices.reduce((sum, choice) => sum + producedCharacters(choice), 0)),
    encode: (billed) => {
      patch.set([], headValues(head, answer, 'chatcmpl-', mintedCompletionId(head.requestId)))
      const counters = encodeUsage(billed) as Record<string, unknown>
      if (usage === undefined) patch.set([], new Map([['usage', JSON.stringify(counters)]]))
      else patchUsage(patch, ['usage'], usage, counters)
      return patch.result()
    },
  }
}

const counterNames = ['prompt_tokens', 'completion_tokens', 'total_tokens'] as const

/** Fills in what spec 2.6 demands and the upstream left out or put elsewhere. */
export function patchUsage(
  patch: JsonPatch,
  path: readonly string[],
  usage: Record<string, unknown>,
  counters: Record<string, unknown>,
): void {
  const missing = new Map<string, string>()
  for (const name of counterNames) if (typeof usage[name] !== 'number') missing.set(name, String(counters[name]))
  const details = asObject(usage['prompt_tokens_details'])
  const known = asObject(counters['prompt_tokens_details'])
  if (details === undefined)
    missing.set('prompt_tokens_details', JSON.stringify({ cached_tokens: known?.['cached_tokens'] ?? 0 }))
  else if (typeof details['cached_tokens'] !== 'number') {
    patch.set([...path, 'prompt_tokens_details'], new Map([['cached_tokens', String(known?.['cached_tokens'] ?? 0)]]))
  }
  patch.set(path, missing)
}

/** Whether usage says all that spec 2.6 demands. */
export function isUsageWhole(usage: Record<string, unknown>): boolean {
  const details = asObject(usage['prompt_tokens_details'])
  return counterNames.every((name) => typeof usage[name] === 'number') && typeof details?.['cached_tokens'] === 'number'
}

function producedCharacters(choice: unknown): number {
  const message = asObject(asObject(choice)?.['message'])
  return message ? JSON.stringify(message).length : 0
}
