import { asObject } from '../src/bytes/json.ts'
import type { Usage } from '../src/inference/usage.ts'
import type { TappedAnswer } from '../test/support/tap.ts'
import type { Place } from './place.ts'

type Json = Record<string, unknown>

/** Readers of the usage of each wire: all input tokens, the cached ones of these, and output tokens. */
const readers: Record<string, (usage: Json) => number[]> = {
  messages: (usage) => [
    number(usage['input_tokens']) +
      number(usage['cache_read_input_tokens']) +
      number(usage['cache_creation_input_tokens']),
    number(usage['cache_read_input_tokens']),
    number(usage['output_tokens']),
  ],
  chat: (usage) => [
    number(usage['prompt_tokens']),
    number(asObject(usage['prompt_tokens_details'])?.['cached_tokens']),
    number(usage['completion_tokens']),
  ],
  responses: (usage) => [
    number(usage['input_tokens']),
    number(asObject(usage['input_tokens_details'])?.['cached_tokens']),
    number(usage['output_tokens']),
  ],
}

/** Lists the answers whose usage, as the client received it, differs from the usage in the ledger. */
export function findWrongUsage({ gateway }: Place): string[] {
  const entries = new Map(
    [...gateway.store.listEntries({ limit: 10_000 })].flatMap((entry) =>
      entry.bill ? [[entry.bill.requestId, entry.bill.usage] as const] : [],
    ),
  )
  return gateway.answers.flatMap((answer) => {
    const told = answer.status === 200 ? usageOf(answer) : undefined
    if (!told) return []
    const entry = entries.get(answer.id)
    const said = readers[answer.asked]!(told).join(', ')
    const billed = entry ? counters(entry).join(', ') : 'nothing'
    return said === billed
      ? []
      : [`${answer.asked}: the client received ${said} tokens (input, cached, output); billed ${billed}`]
  })
}

function counters({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens }: Usage): number[] {
  return [inputTokens + cacheReadTokens + cacheWriteTokens, cacheReadTokens, outputTokens]
}

/** Returns the last usage of an answer, or undefined if it has none, like a stream that was cut. */
function usageOf({ asked, contentType, body }: TappedAnswer): Json | undefined {
  if (!(asked in readers)) return undefined
  if (!contentType.startsWith('text/event-stream')) return asObject(parse(body)?.['usage'])
  const events = body.split('\n').flatMap((line) => (line.startsWith('data: {') ? [parse(line.slice(6))!] : []))
  // On messages, message_start also has a usage, but only the one of message_delta is final.
  if (asked === 'messages') return asObject(events.findLast((event) => event['type'] === 'message_delta')?.['usage'])
  if (asked === 'chat') return asObject(events.findLast((event) => event['usage'])?.['usage'])
  return asObject(asObject(events.at(-1)?.['response'])?.['usage'])
}

function parse(text: string): Json | undefined {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return undefined
  }
}

function number(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
