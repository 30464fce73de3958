import { bearer } from '../../catalog/credentials.ts'
import { wirePlaces } from '../../catalog/wire-names.ts'
import { plainEnvelope } from '../answers/faults.ts'
import type { RequestFacts, SharedWire } from '../wire.ts'
import { ResponsesDecoder } from './decode-answer.ts'
import { decodeRequest, keptKeys } from './decode-request.ts'
import { encodeAnswer, ResponsesEncoder } from './encode-answer.ts'
import { encodeRequest } from './encode-request.ts'
import { responsesFields, responsesScalars } from './fields.ts'
import { readAnswer } from './native-json.ts'
import { adaptRequest } from './native-request.ts'
import { ResponsesNativeStream } from './native-stream.ts'
import { sealing } from './sealing.ts'
import { checkStateless } from './stateless.ts'

const request: RequestFacts = {
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
  check: checkStateless,
}

/** The responses wire (spec 4.4). */
export const responses: SharedWire = {
  name: 'responses',
  client: {
    path: wirePlaces.responses.path,
    request,
    fields: responsesFields,
    callIdPrefix: 'call_',
    probeStatus: 426,
    envelope: plainEnvelope,
    keptKeys,
    decodeRequest,
    encodeAnswer,
    createEncoder: (head) => new ResponsesEncoder(head),
  },
  model: {
    speech: request,
    scalars: responsesScalars,
    credential: bearer,
    signsReasoning: false,
    encodeRequest,
    createDecoder: (profile, onAnswer) => new ResponsesDecoder(profile, onAnswer),
  },
  native: { adaptRequest, sealing, openStream: (head) => new ResponsesNativeStream(head), readAnswer },
}
