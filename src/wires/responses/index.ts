import { wirePlaces } from '../../catalog/model.ts'
import { plainEnvelope } from '../answers/envelope.ts'
import type { Wire } from '../wire.ts'
import { decodeAnswer, encodeAnswer } from './answer.ts'
import { decodeRequest, keptKeys } from './decode-request.ts'
import { createDecoder } from './decode-stream.ts'
import { echo } from './echo.ts'
import { encodeRequest } from './encode-request.ts'
import { createEncoder } from './encode-stream.ts'
import { responsesFields, responsesScalars } from './fields.ts'
import { readAnswer } from './native-json.ts'
import { adaptRequest } from './native-request.ts'
import { ResponsesNativeStream } from './native-stream.ts'
import { sealing } from './sealing.ts'
import { checkStateless } from './stateless.ts'

/** The responses wire (spec 4.4). */
export const responses: Wire = {
  name: 'responses',
  path: wirePlaces.responses.path,
  request: {
    conversation: { field: 'input', kinds: 'a string or an array of items', mayBeText: true },
    caps: ['max_output_tokens'],
    isCapRequired: false,
    words: {
      callId: 'call_id',
      call: 'function_call',
      result: 'function_call_output',
      format: 'text.format',
      effort: 'reasoning.effort',
      budget: 'reasoning.effort',
      stops: "'stop'",
    },
    cacheKey: 'prompt_cache_key',
    echo,
    check: checkStateless,
  },
  fields: responsesFields,
  scalars: responsesScalars,
  callIdPrefix: 'call_',
  credential: 'bearer',
  probeStatus: 426,
  signsReasoning: false,
  envelope: plainEnvelope,
  native: { adaptRequest, sealing, openStream: (head) => new ResponsesNativeStream(head), readAnswer },
  translator: { keptKeys, decodeRequest, encodeRequest, decodeAnswer, createDecoder, encodeAnswer, createEncoder },
}
