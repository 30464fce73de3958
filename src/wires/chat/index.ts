import { bearer } from '../../catalog/credentials.ts'
import { wirePlaces } from '../../catalog/wire-names.ts'
import { plainEnvelope } from '../answers/envelope.ts'
import type { RequestFacts, SharedWire } from '../wire.ts'
import { decodeAnswer, encodeAnswer } from './answer.ts'
import { decodeRequest, keptKeys } from './decode-request.ts'
import { createDecoder } from './decode-stream.ts'
import { encodeRequest } from './encode-request.ts'
import { createEncoder } from './encode-stream.ts'
import { chatFields, chatScalars } from './fields.ts'
import { readAnswer } from './native-json.ts'
import { adaptRequest } from './native-request.ts'
import { ChatNativeStream } from './native-stream.ts'

const request: RequestFacts = {
  conversation: { field: 'messages', kinds: 'an array of messages', mayBeText: false },
  caps: ['max_tokens', 'max_completion_tokens'],
  isCapRequired: false,
  words: {
    callId: 'tool_call_id',
    call: 'tool_calls',
    result: 'tool message',
    format: 'response_format',
    effort: 'reasoning_effort',
    budget: 'reasoning_effort',
    stops: "'stop'",
  },
  cacheKey: 'prompt_cache_key',
}

/** The chat wire (spec 4.3). */
export const chat: SharedWire = {
  name: 'chat',
  client: {
    path: wirePlaces.chat.path,
    request,
    fields: chatFields,
    callIdPrefix: 'call_',
    envelope: plainEnvelope,
    keptKeys,
    decodeRequest,
    encodeAnswer,
    createEncoder,
  },
  model: {
    speech: request,
    scalars: chatScalars,
    credential: bearer,
    signsReasoning: false,
    encodeRequest,
    decodeAnswer,
    createDecoder,
  },
  native: { adaptRequest, openStream: (head) => new ChatNativeStream(head), readAnswer },
}
