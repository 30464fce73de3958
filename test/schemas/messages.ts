import { z } from 'zod'
import { messagesError } from './errors.ts'
import { count, type Mode, someText, wordsOf } from './mode.ts'

/** What the messages wire answers (spec 2.3, 2.4, 6.1; ruling T10): a whole message, a count, and each event of a stream. */
export function messagesSchemas(mode: Mode) {
  const { object, ours, word, kinds } = wordsOf(mode)

  const nothing = mode === 'native' ? (z.unknown() as unknown as z.ZodNull) : z.null()
  const stopReason = word(
    z.enum([
      'end_turn',
      'max_tokens',
      'stop_sequence',
      'tool_use',
      'pause_turn',
      'refusal',
      'model_context_window_exceeded',
    ]),
  )
  const retold = (words: [string, ...string[]]) =>
    mode === 'native' ? nothing : (z.enum(words).nullable() as unknown as z.ZodNull)
  const usage = object({
    input_tokens: count,
    output_tokens: count,
    cache_read_input_tokens: count,
    cache_creation_input_tokens: count,
    // From here on: ruling Y3.
    cache_creation: ours(object({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count })),
    output_tokens_details: ours(object({ thinking_tokens: count })),
    server_tool_use: ours(nothing),
    // In the words of this wire (ruling Y17).
    service_tier: ours(retold(['standard'])),
    inference_geo: ours(mode === 'native' ? nothing : (z.string().nullable() as unknown as z.ZodNull)),
    speed: ours(retold(['fast', 'standard'])),
  })
  // Translated thinking has an empty signature and no other (ruling T10).
  const signature = mode === 'native' ? z.string() : z.string().max(0)
  const noCitations =
    mode === 'native' ? (z.array(z.unknown()) as unknown as z.ZodArray<z.ZodNever>) : z.array(z.never())
  const text = { type: z.literal('text'), text: z.string(), citations: ours(noCitations) }
  const thinking = { type: z.literal('thinking'), thinking: z.string(), signature }
  const caller = ours(object({ type: z.literal('direct') }))
  const call = { type: z.literal('tool_use'), id: someText, name: someText, caller }
  const input = z.record(z.string(), z.unknown())
  const block = kinds(z.discriminatedUnion('type', [object(text), object(thinking), object({ ...call, input })]))
  const about = {
    id: z.string().regex(/^msg_/),
    type: z.literal('message'),
    role: z.literal('assistant'),
    model: someText,
  }

  const rest = { container: ours(nothing), stop_details: ours(nothing) }
  const message = object({
    ...about,
    ...rest,
    diagnostics: ours(nothing),
    content: z.array(block),
    stop_reason: stopReason,
    stop_sequence: z.string().nullable(),
    usage,
  })
  // A block starts empty: what stands in a start event is lost to clients that read deltas only (message-wire §9.2).
  const empty = mode === 'native' ? z.string() : z.string().max(0)
  const startedBlock = kinds(
    z.discriminatedUnion('type', [
      object({ ...text, text: empty }),
      object({ ...thinking, thinking: empty }),
      object({ ...call, input: mode === 'native' ? input : (z.strictObject({}) as unknown as typeof input) }),
    ]),
  )
  const delta = kinds(
    z.discriminatedUnion('type', [
      object({ type: z.literal('text_delta'), text: z.string() }),
      object({ type: z.literal('thinking_delta'), thinking: z.string() }),
      object({ type: z.literal('input_json_delta'), partial_json: z.string() }),
    ]),
  )

  const events = {
    message_start: object({
      type: z.literal('message_start'),
      message: object({
        ...about,
        ...rest,
        diagnostics: ours(nothing),
        content: z.array(block).max(0),
        stop_reason: z.null(),
        stop_sequence: ours(z.null()),
        usage: mode === 'native' ? usage : usage.extend({ output_tokens: count.max(0) }),
      }),
    }),
    content_block_start: object({ type: z.literal('content_block_start'), index: count, content_block: startedBlock }),
    content_block_delta: object({ type: z.literal('content_block_delta'), index: count, delta }),
    content_block_stop: object({ type: z.literal('content_block_stop'), index: count }),
    message_delta: object({
      type: z.literal('message_delta'),
      delta: object({ ...rest, stop_reason: stopReason, stop_sequence: ours(z.string().nullable()) }),
      usage,
    }),
    message_stop: object({ type: z.literal('message_stop') }),
    ping: object({ type: z.literal('ping') }),
    error: messagesError(),
  }
  return { message, block, delta, usage, tokenCount: z.strictObject({ input_tokens: count }), events }
}
