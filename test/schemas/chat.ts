import { z } from 'zod'
import { count, type Mode, seconds, someText, wordsOf } from './mode.ts'

/** What the chat wire answers (spec 2.6, 6.2): a whole completion, and the chunks of a stream. */
export function chatSchemas(mode: Mode) {
  const { object, ours, word } = wordsOf(mode)

  const usage = object({
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: object({ cached_tokens: count, cache_write_tokens: count.optional() }),
    completion_tokens_details: ours(object({ reasoning_tokens: ours(count) })),
  })
  const reason = word(z.enum(['stop', 'length', 'tool_calls', 'content_filter']))
  // As the model has named it (ruling Y17); OpenAI's types list some words.
  const tier = (mode === 'native' ? z.unknown() : z.string()).optional() as unknown as z.ZodOptional<
    z.ZodLiteral<'default'>
  >
  const about = { id: z.string().regex(/^chatcmpl-/), created: seconds, model: someText, service_tier: tier }

  const call = object({
    id: someText,
    type: z.literal('function'),
    function: object({ name: someText, arguments: z.string() }),
  })
  const annotations =
    mode === 'native' ? (z.array(z.unknown()) as unknown as z.ZodArray<z.ZodNever>) : z.array(z.never())
  const message = object({
    role: z.literal('assistant'),
    content: z.string().nullable(),
    refusal: ours(z.string().nullable()),
    annotations: ours(annotations),
    // Without a call the key is not there: programs test for its presence (chat-wire §7).
    tool_calls: z.array(call).min(1).optional(),
    reasoning_content: mode === 'native' ? (z.string().nullish() as unknown as OptionalText) : someText.optional(),
  })
  const completion = object({
    ...about,
    object: z.literal('chat.completion'),
    choices: z.array(object({ index: count, message, logprobs: ours(z.null()), finish_reason: reason })).min(1),
    usage,
  })

  // The first piece of a call says all about it, the others have only more of its arguments (clients §7).
  const callPiece = z.union([
    object({
      index: count,
      id: someText,
      type: z.literal('function'),
      function: object({ name: someText, arguments: z.string() }),
    }),
    object({ index: count, function: object({ arguments: z.string() }) }),
  ])
  const delta = object({
    role: z.literal('assistant').optional(),
    content: z.string().nullish(),
    refusal: ours(z.string().nullable()).optional(),
    annotations: ours(annotations).optional(),
    reasoning_content: ours(z.string()).optional(),
    tool_calls: z.array(callPiece).min(1).optional(),
  })
  const choice = object({ index: count, delta, logprobs: ours(z.null()), finish_reason: reason.nullable() })
  const chunkAbout = { ...about, object: z.literal('chat.completion.chunk') }
  /** A piece of the answer; usage has its own chunk. */
  const chunk = object({
    ...chunkAbout,
    choices: z
      .array(choice)
      .min(1)
      .max(mode === 'native' ? 128 : 1),
  })
  /** The last one (spec 6.2). */
  const usageChunk = object({ ...chunkAbout, choices: z.array(choice).max(0), usage })
  return { completion, chunk, usageChunk, usage, message }
}

type OptionalText = z.ZodOptional<z.ZodString>

/** Spec 2.9: exactly four fields in every row, and no key beside the two at the top. */
export const modelList = z.strictObject({
  object: z.literal('list'),
  data: z.array(z.strictObject({ id: someText, object: z.literal('model'), created: seconds, owned_by: someText })),
})
