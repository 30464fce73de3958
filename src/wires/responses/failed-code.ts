import type { ErrorFacts } from '../answers/envelope.ts'

/** `response.error.code` in the words of this wire's vendor: agents decide by it whether to try again (ruling T4). */
export function failedCode(facts: Pick<ErrorFacts, 'status' | 'code' | 'message'>): string {
  if (facts.code === 'rate_limit_exceeded') return 'rate_limit_exceeded'
  if (facts.code === 'invalid_request' && isOverLong(facts.message)) return 'context_length_exceeded'
  return 'server_error'
}

/** Whether a text says that the prompt does not fit, in the words that agents look for (ruling U3). */
function isOverLong(message: string): boolean {
  return /prompt is too long|maximum context length|exceeds? the context window|exceed context limit/i.test(message)
}
