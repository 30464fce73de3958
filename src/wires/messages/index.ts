import { apiKeyHeader } from '../../catalog/credentials.ts'
import { wirePlaces } from '../../catalog/wire-names.ts'
import type { ClientBody } from '../requests/client-body.ts'
import { invalidField } from '../requests/refusals.ts'
import type { RequestFacts, SharedWire } from '../wire.ts'
import { countTokens } from './count-tokens.ts'
import { MessagesDecoder } from './decode-answer.ts'
import { decodeRequest, keptKeys } from './decode-request.ts'
import { encodeAnswer, MessagesEncoder } from './encode-answer.ts'
import { encodeRequest } from './encode-request.ts'
import { envelope } from './envelope.ts'
import { messagesFields, messagesScalars } from './fields.ts'
import { readAnswer } from './native-json.ts'
import { adaptRequest } from './native-request.ts'
import { MessagesNativeStream } from './native-stream.ts'
import { sealing } from './sealing.ts'

const request: RequestFacts = {
  conversation: { field: 'messages', kinds: 'an array of messages', mayBeText: false },
  caps: ['max_tokens'],
  isCapRequired: true,
  words: {
    callId: 'tool_use_id',
    call: 'tool_use',
    result: 'tool_result',
    format: 'output_config.format',
    effort: 'output_config.effort',
    budget: 'thinking.budget_tokens',
    stops: 'stop_sequences',
  },
  check: refuseThread,
}

/** The messages wire (spec 4.1, 4.2). */
export const messages: SharedWire = {
  name: 'messages',
  client: {
    path: wirePlaces.messages.path,
    request,
    fields: messagesFields,
    callIdPrefix: 'toolu_',
    requestIdHeader: 'request-id',
    showsSpend: true,
    streamsObjects: true,
    envelope,
    counter: { path: '/v1/messages/count_tokens', countTokens },
    keptKeys,
    decodeRequest,
    encodeAnswer,
    createEncoder: (head) => new MessagesEncoder(head),
  },
  model: {
    speech: request,
    scalars: messagesScalars,
    credential: apiKeyHeader,
    versionHeaders: { spellings: ['msgwire', 'anthropic'], versionDefault: '2023-06-01' },
    signsReasoning: true,
    sealing,
    encodeRequest,
    createDecoder: (profile, onAnswer) => new MessagesDecoder(profile, onAnswer),
  },
  native: { adaptRequest, openStream: (head) => new MessagesNativeStream(head), readAnswer },
}

/**
 * Refuses a thread, which is a conversation stored by the provider. Neither the gateway nor the provider may store
 * anything between requests (spec 1.7). The error's details make the vendor's SDKs send the whole conversation instead.
 * The value `false` asks for no thread.
 * @throws GatewayError 400 `invalid_body` on every model (ruling T22)
 */
function refuseThread(body: ClientBody): void {
  if (!body.has('thread') || body.value('thread') === false) return
  const message = 'The field thread is not supported: nothing is stored here, send the whole conversation in messages.'
  const details = { error_code: 'thread_unsupported_request', unsupported: ['thread'] }
  throw invalidField('thread', message, details)
}
