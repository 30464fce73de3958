import { asObject } from '../../bytes/json.ts'
import { mintId } from '../../inference/ids.ts'
import type { Usage } from '../../inference/usage.ts'
import { objectsOf } from '../answers/read-answer.ts'
import type { AnswerHead } from '../wire.ts'
import { encodeUsage } from './usage.ts'

export type Ending = {
  status: 'completed' | 'incomplete' | 'failed'
  incomplete?: { reason: string } | null
  error?: { code: string; message: string }
  /** The items as JSON text, in order. */
  output: readonly string[]
  usage: Usage | null
}

/**
 * The response object with all the top-level keys its vendor sends: what the client asked for is echoed, the rest has
 * the vendor's defaults (ruling T12). The echo can be large, so it is written once.
 */
export function createResponse(head: AnswerHead): { begun(): string; ended(ending: Ending): string } {
  const id = JSON.stringify(mintId('resp_', head.requestId, ''))
  const start = `{"id":${id},"object":"response","created_at":${head.createdSeconds},`
  const echo = JSON.stringify(echoOf(head)).slice(1)
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

/** What of a request `echoOf` repeats. */
export const echoed = [
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'parallel_tool_calls',
  'prompt_cache_key',
  'reasoning',
  'safety_identifier',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'truncation',
  'user',
] as const

/** Only what is listed above is there to be read. */
type Echo = Partial<Record<(typeof echoed)[number], unknown>>

function echoOf(head: AnswerHead): Record<string, unknown> {
  const echo = head.echo as Echo
  const reasoning = asObject(echo['reasoning'])
  const text = asObject(echo['text'])
  return {
    model: head.modelId,
    background: false,
    instructions: echo['instructions'] ?? null,
    max_output_tokens: echo['max_output_tokens'] ?? null,
    max_tool_calls: integerOf(echo['max_tool_calls'], null),
    metadata: wordsOnly(asObject(echo['metadata'])),
    parallel_tool_calls: typeof echo['parallel_tool_calls'] === 'boolean' ? echo['parallel_tool_calls'] : true,
    previous_response_id: null,
    prompt_cache_key: echo['prompt_cache_key'] ?? null,
    reasoning: { effort: reasoning?.['effort'] ?? null, summary: reasoning?.['summary'] ?? null },
    safety_identifier: echo['safety_identifier'] ?? null,
    service_tier: 'default',
    store: false,
    temperature: numberOf(echo['temperature'], 1),
    text: {
      format: asObject(text?.['format']) ?? { type: 'text' },
      ...(typeof text?.['verbosity'] === 'string' && { verbosity: text['verbosity'] }),
    },
    tool_choice: echo['tool_choice'] ?? 'auto',
    tools: objectsOf(echo['tools']).map(echoTool),
    top_logprobs: integerOf(echo['top_logprobs'], 0),
    top_p: numberOf(echo['top_p'], 1),
    presence_penalty: numberOf(echo['presence_penalty'], 0),
    frequency_penalty: numberOf(echo['frequency_penalty'], 0),
    truncation: echo['truncation'] === 'auto' ? 'auto' : 'disabled',
    user: echo['user'] ?? null,
  }
}

/** Strictly typed clients want all four members of a function, null where the client said nothing. */
function echoTool(tool: Record<string, unknown>): Record<string, unknown> {
  if (tool['type'] !== 'function') return tool
  const { description = null, parameters = null, strict = null } = tool
  return { ...tool, description, parameters, strict }
}

/** Labels are words; clients are typed so. */
function wordsOnly(labels: Record<string, unknown> = {}): Record<string, unknown> {
  return Object.fromEntries(Object.entries(labels).filter(([, label]) => typeof label === 'string'))
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}

function integerOf(value: unknown, otherwise: number | null): number | null {
  return Number.isInteger(value) ? (value as number) : otherwise
}
