import { mintId } from '../../inference/ids.ts'
import type { Usage } from '../../inference/usage.ts'
import type { ErrorFacts } from '../answers/faults.ts'
import type { AnswerHead } from '../wire.ts'
import { encodeUsage } from './usage.ts'

type ResponseEnd = {
  status: 'completed' | 'incomplete' | 'failed'
  incomplete?: { reason: string } | null
  error?: { code: string; message: string }
  /** The items as JSON text, in order. */
  output: readonly string[]
  usage: Usage | null
}

/**
 * The response object with all the top-level keys that its vendor sends. The client's settings are repeated, and the
 * rest has the vendor's defaults (ruling T12).
 */
export function createResponse(head: AnswerHead): { begun(): string; ended(ending: ResponseEnd): string } {
  const id = JSON.stringify(mintId('resp_', head.requestId, ''))
  const start = `{"id":${id},"object":"response","created_at":${head.createdSeconds},`
  const echo = `"model":${JSON.stringify(head.modelId)},${head.echo}}`
  return {
    begun: () => write('in_progress', 'null', null, null, [], null),
    ended({ status, incomplete = null, error = null, output, usage }) {
      const completedAt = status === 'completed' ? `${head.nowSeconds?.() ?? head.createdSeconds}` : 'null'
      return write(status, completedAt, incomplete, error, output, usage)
    },
  }

  function write(
    status: string,
    completedAt: string,
    incomplete: object | null,
    error: object | null,
    output: readonly string[],
    usage: Usage | null,
  ): string {
    const counters = usage ? JSON.stringify(encodeUsage(usage)) : 'null'
    return (
      `${start}"completed_at":${completedAt},"status":"${status}","error":${JSON.stringify(error)},` +
      `"incomplete_details":${JSON.stringify(incomplete)},"output":[${output.join(',')}],"usage":${counters},${echo}`
    )
  }
}

/** `response.error.code` in the words of this wire's vendor: agents decide by it whether to try again (ruling T4). */
export function failedCode(facts: Pick<ErrorFacts, 'status' | 'code' | 'message'>): string {
  if (facts.code === 'rate_limit_exceeded') return 'rate_limit_exceeded'
  if (facts.code === 'invalid_request' && overLong.test(facts.message)) return 'context_length_exceeded'
  return 'server_error'
}

/** The words by which agents know that the prompt does not fit (ruling U3). */
const overLong = /prompt is too long|maximum context length|exceeds? the context window|exceed context limit/i
