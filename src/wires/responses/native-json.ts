import { sha256Base62 } from '../../digest.ts'
import type { Fault } from '../../inference/answer.ts'
import { asObject } from '../../json.ts'
import { faultOf, headValues, JsonPatch, type NativeHead, tokensOfCharacters } from '../native-answer.ts'
import type { WholeAnswer } from '../relay.ts'
import { decodeUsage, encodeUsage } from './usage.ts'

/** An id for an answer whose upstream gave none with the wire's prefix (ruling P3). */
export function mintedResponseId(requestId: string): string {
  return `resp_${sha256Base62(`${requestId}/answer`, 24)}`
}

/** A responses model's whole answer for a responses client (ruling P2). */
export function readAnswer(body: Buffer, head: NativeHead): WholeAnswer {
  let patch: JsonPatch
  try {
    patch = new JsonPatch(body)
  } catch {
    return { fault: { kind: 'broken', text: 'the answer is not a JSON object' } }
  }
  const answer = patch.value
  if (answer['error'] != null) return { fault: responseFault(answer['error']) }
  if (!Array.isArray(answer['output']) || !isEnded(answer['status'])) {
    return { fault: { kind: 'broken', text: 'the answer is not an ended response' } }
  }
  const usage = asObject(answer['usage'])
  return {
    report: decodeUsage(usage, head.model.profile.usageQuirk),
    estimateOutput: () => tokensOfCharacters(JSON.stringify(answer['output']).length),
    encode: (billed) => {
      patch.set([], responseValues(head, answer))
      patchUsage(patch, [], usage, encodeUsage(billed) as Record<string, unknown>)
      return patch.result()
    },
  }
}

/** Model, id and `store` of a response object, where the upstream's may not be shown (spec 4.4, rulings P2, P3). */
export function responseValues(head: NativeHead, response: Record<string, unknown>): Map<string, string> {
  const values = headValues(head, response, 'resp_', mintedResponseId(head.requestId))
  if (response['store'] !== false) values.set('store', 'false')
  return values
}

/** Fills in the counters that spec 2.8 demands. */
export function patchUsage(
  patch: JsonPatch,
  path: readonly string[],
  usage: Record<string, unknown> | undefined,
  counters: Record<string, unknown>,
): void {
  if (usage === undefined) {
    patch.set(path, new Map([['usage', JSON.stringify(counters)]]))
    return
  }
  const missing = new Map<string, string>()
  for (const [name, value] of Object.entries(counters)) {
    const isThere = typeof value === 'number' ? typeof usage[name] === 'number' : asObject(usage[name]) !== undefined
    if (!isThere) missing.set(name, JSON.stringify(value))
  }
  patch.set([...path, 'usage'], missing)
}

/** A response's own error; its code speaks of the request or of the provider. */
export function responseFault(error: unknown): Fault {
  return faultOf(error)
}

function isEnded(status: unknown): boolean {
  return status === undefined || status === 'completed' || status === 'incomplete'
}
