import type { SimulatedError, WireFormat } from '../prompt.ts'
import { checkMessages } from './check.ts'
import { read } from './read.ts'
import { frame, writeFrames, writeJson } from './write.ts'

/** The messages wire as its vendor speaks it (wires/message-wire). */
export const messages: WireFormat = {
  path: '/v1/messages',
  idPrefix: 'msg_01',
  requestIdHeader: 'request-id',
  check: checkMessages,
  read,
  writeJson,
  writeFrames,
  writeFailure: (error) => [
    frame({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded', ...error } }),
  ],
  writeError: (problem, requestId) => ({
    type: 'error',
    error: { type: errorType(problem), message: problem.message },
    request_id: requestId,
  }),
}

const errorTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

function errorType({ status }: SimulatedError): string {
  return errorTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
}
