import { bearer } from '../../catalog/credentials.ts'
import { wirePlaces } from '../../catalog/wire-names.ts'
import { plainEnvelope } from '../answers/faults.ts'
import type { RequestFacts, SharedWire } from '../wire.ts'
import { ChatDecoder } from './decode-answer.ts'
import { decodeRequest, keptKeys } from './decode-request.ts'
import { ChatEncoder, encodeAnswer } from './encode-answer.ts'
import { encodeRequest } from './encode-request.ts'
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
    createEncoder: (head) => new ChatEncoder(head),
  },
  model: {
    speech: request,
    scalars: chatScalars,
    credential: bearer,
    signsReasoning: false,
    encodeRequest,
    createDecoder: (profile, onAnswer, toolNames) => new ChatDecoder(profile, onAnswer, toolNames),
  },
  native: { adaptRequest, openStream: (head) => new ChatNativeStream(head), readAnswer },
}
