import { asObject } from '../../bytes/json.ts'
import { objectsOf } from '../answers/read-answer.ts'

/**
 * The members in which a response repeats its request. Fields that the client left out get the vendor's defaults
 * (ruling T12).
 * @param echo the fields of the request
 */
export function echoOf(echo: Record<string, unknown>): Record<string, unknown> {
  const reasoning = asObject(echo['reasoning'])
  const text = asObject(echo['text'])
  return {
    access_programs: null,
    background: false,
    instructions: echo['instructions'] ?? null,
    max_output_tokens: integerOf(echo['max_output_tokens'], null),
    max_tool_calls: integerOf(echo['max_tool_calls'], null),
    metadata: wordsOnly(asObject(echo['metadata'])),
    parallel_tool_calls: typeof echo['parallel_tool_calls'] === 'boolean' ? echo['parallel_tool_calls'] : true,
    previous_response_id: null,
    prompt_cache_key: echo['prompt_cache_key'] ?? null,
    reasoning: { effort: reasoning?.['effort'] ?? null, summary: reasoning?.['summary'] ?? null },
    safety_identifier: echo['safety_identifier'] ?? null,
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

/**
 * Completes a tool of the request for the answer, which repeats the request's tools. Strictly typed clients require the
 * tool's type and all four members of a function. Missing members become null. A tool without a type is a function.
 */
function echoTool(tool: Record<string, unknown>): Record<string, unknown> {
  const type = tool['type'] ?? 'function'
  if (type !== 'function') return tool
  const { description = null, parameters = null, strict = null } = tool
  return { ...tool, type, description, parameters, strict }
}

/** Keeps only those labels in `metadata` that are strings, since the types of clients allow nothing else. */
function wordsOnly(labels: Record<string, unknown> = {}): Record<string, unknown> {
  return Object.fromEntries(Object.entries(labels).filter(([, label]) => typeof label === 'string'))
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}

/**
 * Returns the value if it is a safe integer, and else `otherwise`. A cap beyond 2^53 limits nothing, and strictly typed
 * clients could not parse it.
 */
function integerOf(value: unknown, otherwise: number | null): number | null {
  return Number.isSafeInteger(value) ? (value as number) : otherwise
}
