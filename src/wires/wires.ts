import type { Model, WireName } from '../catalog/model.ts'
import { readAnswer as readChat } from './chat/native-json.ts'
import { adaptRequest as adaptChat } from './chat/native-request.ts'
import { ChatNativeStream } from './chat/native-stream.ts'
import type { ClientBody } from './client-body.ts'
import { readAnswer as readMessages } from './messages/native-json.ts'
import { adaptRequest as adaptMessages } from './messages/native-request.ts'
import { MessagesNativeStream } from './messages/native-stream.ts'
import type { NativeHead } from './native-answer.ts'
import type { AdaptContext, AdaptedRequest } from './native-request.ts'
import type { StreamRelay, WholeAnswer } from './relay.ts'
import { readAnswer as readResponses } from './responses/native-json.ts'
import { adaptRequest as adaptResponses } from './responses/native-request.ts'
import { ResponsesNativeStream } from './responses/native-stream.ts'

/** The half of a wire that passes through: edits on the way there, a side glance on the way back (rulings P1, P2). */
export type Native = {
  /** @throws GatewayError 400 for what the specification refuses on this wire. */
  adaptRequest(body: ClientBody, model: Model, context: AdaptContext): AdaptedRequest
  openStream(head: NativeHead): StreamRelay
  readAnswer(body: Buffer, head: NativeHead): WholeAnswer
}

/** Where each wire is served, by us and by upstreams (spec 1.2). */
export const wirePaths: Record<WireName, string> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
}

export const natives: Record<WireName, Native> = {
  messages: {
    adaptRequest: adaptMessages,
    openStream: (head) => new MessagesNativeStream(head),
    readAnswer: readMessages,
  },
  chat: { adaptRequest: adaptChat, openStream: (head) => new ChatNativeStream(head), readAnswer: readChat },
  responses: {
    adaptRequest: adaptResponses,
    openStream: (head) => new ResponsesNativeStream(head),
    readAnswer: readResponses,
  },
}
