import type { WireName } from '../catalog/model.ts'
import * as chatAnswer from './chat/answer.ts'
import * as chatRequest from './chat/request.ts'
import * as chatStream from './chat/stream.ts'
import * as messagesAnswer from './messages/answer.ts'
import * as messagesRequest from './messages/request.ts'
import * as messagesStream from './messages/stream.ts'
import * as responsesAnswer from './responses/answer.ts'
import * as responsesRequest from './responses/request.ts'
import * as responsesStream from './responses/stream.ts'
import type { Translator } from './wire.ts'

/** What each wire can do for the hub: the three spokes. */
export const translators: Record<WireName, Translator> = {
  messages: { ...messagesRequest, ...messagesAnswer, ...messagesStream },
  chat: { ...chatRequest, ...chatAnswer, ...chatStream },
  responses: { ...responsesRequest, ...responsesAnswer, ...responsesStream },
}
