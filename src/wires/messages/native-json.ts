import { sha256Base62 } from '../../digest.ts'
import { asObject } from '../../json.ts'
import { faultOf, headValues, JsonPatch, type NativeHead, tokensOfCharacters } from '../native-answer.ts'
import type { WholeAnswer } from '../relay.ts'
import { decodeUsage, encodeUsage } from './usage.ts'

/** An id for an answer whose upstream gave none with the wire's prefix (ruling P3). */
export function mintedMessageId(requestId: string): string {
  return `msg_${sha256Base62(`${requestId}/answer`, 24)}`
}

/** A messages model's whole answer for a messages client (ruling P2). */
export function readAnswer(body: Buffer, head: NativeHead): WholeAnswer {
  let patch: JsonPatch
  try {
    patch = new JsonPatch(body)
  } catch {
    return { fault: { kind: 'broken', text: 'the answer is not a JSON object' } }
  }
  const answer = patch.value
  if (answer['error'] != null) return { fault: faultOf(answer['error']) }
  if (answer['type'] !== 'message' || !Array.isArray(answer['content'])) {
    return { fault: { kind: 'broken', text: 'the answer is not a message' } }
  }
  const usage = asObject(answer['usage'])
  return {
    report: decodeUsage(usage, head.model.profile.usageQuirk),
    estimateOutput: () => tokensOfCharacters(JSON.stringify(answer['content']).length),
    encode: (billed) => {
      patch.set([], headValues(head, answer, 'msg_', mintedMessageId(head.requestId)))
      const counters = encodeUsage(billed) as Record<string, number>
      if (usage === undefined) patch.set([], new Map([['usage', JSON.stringify(counters)]]))
      else patch.set(['usage'], missingCounters(usage, counters))
      return patch.result()
    },
  }
}

const counterNames = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
] as const

export const zeroUsage: Record<string, number> = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
}

export function pickCounters(known: Record<string, number>): Record<string, number> {
  return Object.fromEntries(counterNames.map((name) => [name, known[name] ?? 0]))
}

/** The counters that an upstream left out or put as null (spec 2.3). */
export function missingCounters(usage: Record<string, unknown>, known: Record<string, number>): Map<string, string> {
  const missing = new Map<string, string>()
  for (const name of counterNames) if (typeof usage[name] !== 'number') missing.set(name, String(known[name] ?? 0))
  return missing
}
