import type * as Anthropic from '@anthropic-ai/sdk/resources/messages/messages'
import type * as Chat from 'openai/resources/chat/completions'
import type { CompletionUsage } from 'openai/resources/completions'
import type { Model } from 'openai/resources/models'
import type * as Responses from 'openai/resources/responses/responses'
import type { ErrorObject } from 'openai/resources/shared'
import type { z } from 'zod'
import type { chatSchemas, modelList } from './chat.ts'
import type { chatError } from './errors.ts'
import type { messagesSchemas } from './messages.ts'
import type { responsesSchemas } from './responses.ts'

/*
 * Whether a program that is typed by the official SDKs can read what we send. For each body and event stands here which
 * keys of the official type it could not: an official key that is required and not sent, or sent as another type. The
 * list must be exact, so that an SDK's next version which demands more is seen at its bump. It is checked by tsc alone.
 */

type RequiredKeys<T> = { [K in keyof T]-?: object extends Pick<T, K> ? never : K }[keyof T]
type DifferentKeys<Sent, Official> = {
  [K in keyof Sent & keyof Official]-?: Sent[K] extends Official[K] ? never : K
}[keyof Sent & keyof Official]

type Unread<Sent, Official> = [Official] extends [never]
  ? 'not in the SDK'
  : Exclude<RequiredKeys<Official>, keyof Sent> | DifferentKeys<Sent, Official>

type UnreadEvents<Events extends Record<string, z.ZodType>, Official> = {
  [T in keyof Events]: Unread<z.infer<Events[T]>, Extract<Official, { type: T }>>
}

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : { found: A; listed: B }) : { found: A; listed: B }
type Pin<Holds extends true> = Holds
type Kind<Union, Type extends string> = Extract<Union, { type: Type }>

type M = ReturnType<typeof messagesSchemas>
type Block = z.infer<M['block']>

export type MessagesPins = [
  Pin<Same<Unread<z.infer<M['message']>, Anthropic.Message>, never>>,
  Pin<Same<Unread<z.infer<M['usage']>, Anthropic.Usage>, never>>,
  Pin<Same<Unread<Kind<Block, 'text'>, Anthropic.TextBlock>, never>>,
  Pin<Same<Unread<Kind<Block, 'thinking'>, Anthropic.ThinkingBlock>, never>>,
  Pin<Same<Unread<Kind<Block, 'tool_use'>, Anthropic.ToolUseBlock>, never>>,
  Pin<Same<Unread<z.infer<M['tokenCount']>, Anthropic.MessageTokensCount>, never>>,
  Pin<
    Same<
      UnreadEvents<M['events'], Anthropic.RawMessageStreamEvent>,
      {
        message_start: never
        content_block_start: never
        content_block_delta: never
        content_block_stop: never
        message_delta: never
        message_stop: never
        // The SDK takes these two out of the stream before its types begin.
        ping: 'not in the SDK'
        error: 'not in the SDK'
      }
    >
  >,
  Pin<Same<Unread<z.infer<M['events']['message_delta']>['delta'], Anthropic.RawMessageDeltaEvent['delta']>, never>>,
  Pin<Same<Unread<z.infer<M['usage']>, Anthropic.MessageDeltaUsage>, never>>,
]

type C = ReturnType<typeof chatSchemas>
type ChatError = z.infer<ReturnType<typeof chatError>>

export type ChatPins = [
  Pin<Same<Unread<z.infer<C['completion']>, Chat.ChatCompletion>, never>>,
  Pin<Same<Unread<z.infer<C['usage']>, CompletionUsage>, never>>,
  Pin<Same<Unread<z.infer<C['chunk']>, Chat.ChatCompletionChunk>, never>>,
  Pin<Same<Unread<z.infer<C['usageChunk']>, Chat.ChatCompletionChunk>, never>>,
  Pin<Same<Unread<z.infer<typeof modelList>['data'][number], Model>, never>>,
  Pin<Same<Unread<ChatError['error'], ErrorObject>, never>>,
]

type R = ReturnType<typeof responsesSchemas>
type Item = z.infer<R['doneItem']>
/**
 * `output_text` is not sent: the vendor's SDK makes it from the items, as the vendor itself does not send it. The rest is
 * what the client itself has asked for, echoed as it was, and `user`, null where the client named nobody (ruling T12).
 */
type NotSent = 'output_text'
type Echoed = 'reasoning' | 'text' | 'tool_choice' | 'tools' | 'user'

export type ResponsesPins = [
  Pin<Same<Unread<z.infer<R['completed']>, Responses.Response>, NotSent | Echoed>>,
  Pin<Same<Unread<z.infer<R['incomplete']>, Responses.Response>, NotSent | Echoed>>,
  // The vendor's counters are null, too, until the end; its types leave that out.
  Pin<Same<Unread<z.infer<R['begun']>, Responses.Response>, NotSent | Echoed | 'usage'>>,
  // As above; and the code may be one that agents act on and the types do not list (ruling T4).
  Pin<Same<Unread<z.infer<R['failed']>, Responses.Response>, NotSent | Echoed | 'usage' | 'error'>>,
  Pin<Same<Unread<z.infer<R['usage']>, Responses.ResponseUsage>, never>>,
  Pin<Same<Unread<Kind<Item, 'message'>, Responses.ResponseOutputMessage>, never>>,
  Pin<Same<Unread<Kind<Item, 'function_call'>, Responses.ResponseFunctionToolCall>, never>>,
  Pin<Same<Unread<Kind<Item, 'reasoning'>, Responses.ResponseReasoningItem>, never>>,
  Pin<Same<UnreadEvents<Omit<R['events'], Lifecycle>, Responses.ResponseStreamEvent>, Record<Detail, never>>>,
  Pin<Same<UnreadEvents<Pick<R['events'], Lifecycle>, Responses.ResponseStreamEvent>, Record<Lifecycle, 'response'>>>,
]

/** Their response objects are pinned one by one. */
type Lifecycle =
  | 'response.created'
  | 'response.in_progress'
  | 'response.completed'
  | 'response.incomplete'
  | 'response.failed'
type Detail = Exclude<keyof R['events'], Lifecycle>
