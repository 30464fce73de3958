import type { SimulatorJson } from '../check.ts'
import type { SimulatedError, WireFormat } from '../prompt.ts'
import { checkChat } from './check.ts'
import { read } from './read.ts'
import { frame, writeFrames, writeJson } from './write.ts'

/** The chat wire as its vendor speaks it (wires/chat-wire). */
export const chat: WireFormat = {
  path: '/v1/chat/completions',
  idPrefix: 'chatcmpl-',
  requestIdHeader: 'x-request-id',
  check: checkChat,
  read,
  writeJson,
  writeFrames,
  writeFailure: (error) => [
    frame({ error: { message: 'The server had an error.', type: 'server_error', param: null, code: null, ...error } }),
  ],
  writeError: writeOpenError,
}

const errorTypes: Record<number, { type: string; code: string | null }> = {
  401: { type: 'invalid_request_error', code: 'invalid_api_key' },
  402: { type: 'insufficient_quota', code: 'insufficient_quota' },
  404: { type: 'invalid_request_error', code: 'model_not_found' },
  429: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  500: { type: 'server_error', code: null },
  503: { type: 'service_unavailable_error', code: null },
}

/** The error body of the chat and responses wires, which belong to one vendor. All four keys are always there. */
export function writeOpenError(problem: SimulatedError): SimulatorJson {
  const fallback = { type: problem.status < 500 ? 'invalid_request_error' : 'server_error', code: null }
  const known = errorTypes[problem.status] ?? fallback
  const { message, param = null } = problem
  return { error: { message, type: known.type, param, code: problem.code ?? known.code } }
}
