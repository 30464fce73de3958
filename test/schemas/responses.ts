import { z } from 'zod'
import { count, type Mode, seconds, someText, wordsOf } from './mode.ts'

/** What the responses wire answers (spec 2.8, 6.3; ruling T12): a whole response, and each event of a stream. */
export function responsesSchemas(mode: Mode) {
  const { object, ours, kinds } = wordsOf(mode)
  const isNative = mode === 'native'

  const usage = object({
    input_tokens: count,
    input_tokens_details: object({ cached_tokens: count, cache_write_tokens: ours(count) }),
    output_tokens: count,
    output_tokens_details: object({ reasoning_tokens: count }),
    total_tokens: count,
  })

  // We have no annotations and no probabilities; an empty list is what a list of any type can be.
  const nothing = isNative ? (z.array(z.unknown()) as unknown as z.ZodArray<z.ZodNever>) : z.array(z.never())
  const outputText = object({
    type: z.literal('output_text'),
    text: z.string(),
    annotations: nothing,
    logprobs: ours(nothing),
  })
  const refusal = object({ type: z.literal('refusal'), refusal: z.string() })
  const part = kinds(z.discriminatedUnion('type', [outputText, refusal]))
  const summaryPart = object({ type: z.literal('summary_text'), text: z.string() })

  const items = <T extends string>(status: z.ZodType<T>) =>
    kinds(
      z.discriminatedUnion('type', [
        object({
          id: idOf('msg_'),
          type: z.literal('message'),
          status,
          role: z.literal('assistant'),
          content: z.array(part),
        }),
        object({
          id: idOf('fc_'),
          type: z.literal('function_call'),
          status,
          call_id: someText,
          name: someText,
          arguments: z.string(),
          namespace: someText.optional(),
        }),
        object({
          id: idOf('rs_'),
          type: z.literal('reasoning'),
          status: ours(status),
          summary: z.array(summaryPart),
          encrypted_content: isNative ? (z.string().nullish() as unknown as OptionalText) : someText.optional(),
        }),
      ]),
    )
  const begunItem = items(z.literal('in_progress'))
  const doneItem = items(z.enum(['completed', 'incomplete']))

  /** The client's own tools, echoed; strictly typed clients want all members of a function (clients §7). */
  const tool = z
    .looseObject({ type: someText })
    .refine(
      (tool) => isNative || tool.type !== 'function' || functionKeys.every((key) => key in tool),
      'a function without all of its keys',
    )
  const incompleteDetails = object({
    reason: isNative ? (z.string() as unknown as typeof incompleteReason) : incompleteReason,
  })
  const error = object({ code: someText, message: someText })
  const response = <Status extends string, Rest extends z.core.$ZodLooseShape>(status: Status, rest: Rest) =>
    object({
      id: z.string().regex(/^resp_/),
      object: z.literal('response'),
      created_at: seconds,
      status: z.literal(status),
      model: someText,
      parallel_tool_calls: isNative ? (z.boolean().optional() as unknown as z.ZodBoolean) : z.boolean(),
      store: z.literal(false),
      access_programs: ours(z.null()),
      background: ours(z.literal(false)),
      instructions: ours(z.string().nullable()),
      max_output_tokens: ours(count.nullable()),
      max_tool_calls: ours(z.int().nullable()),
      metadata: ours(z.record(z.string(), z.string())),
      previous_response_id: ours(z.null()),
      prompt_cache_key: ours(z.string().nullable()),
      reasoning: ours(object({ effort: ours(z.string().nullable()), summary: ours(z.string().nullable()) })),
      safety_identifier: ours(z.string().nullable()),
      service_tier: ours(z.string().nullable() as unknown as z.ZodLiteral<'default'>),
      temperature: ours(z.number()),
      text: ours(object({ format: ours(z.looseObject({ type: someText })), verbosity: z.string().nullish() })),
      tool_choice: ours(z.union([z.enum(['none', 'auto', 'required']), z.looseObject({ type: someText })])),
      tools: ours(z.array(tool)),
      top_logprobs: ours(z.int()),
      top_p: ours(z.number()),
      presence_penalty: ours(z.number()),
      frequency_penalty: ours(z.number()),
      truncation: ours(z.enum(['auto', 'disabled'])),
      user: ours(z.string().nullable()),
      ...rest,
    })

  const begun = response('in_progress', {
    completed_at: ours(z.null()),
    error: z.null(),
    incomplete_details: z.null(),
    output: z.array(doneItem).max(0),
    usage: ours(z.null()),
  })
  const completed = response('completed', {
    completed_at: ours(seconds),
    error: z.null(),
    incomplete_details: z.null(),
    output: z.array(doneItem),
    usage,
  })
  const incomplete = response('incomplete', {
    completed_at: ours(z.null()),
    error: z.null(),
    incomplete_details: incompleteDetails,
    output: z.array(doneItem),
    usage,
  })
  const failed = response('failed', {
    completed_at: ours(z.null()),
    error,
    incomplete_details: z.null(),
    output: z.array(doneItem),
    usage: usage.nullable(),
  })

  const event = <Type extends string, Rest extends z.core.$ZodLooseShape>(type: Type, rest: Rest) =>
    object({ type: z.literal(type), sequence_number: count, ...rest })
  const inItem = { item_id: someText, output_index: count }
  const inPart = { ...inItem, content_index: count }
  const inSummary = { ...inItem, summary_index: count }
  const logprobs = ours(nothing)

  const events = {
    'response.created': event('response.created', { response: begun }),
    'response.in_progress': event('response.in_progress', { response: begun }),
    'response.output_item.added': event('response.output_item.added', { output_index: count, item: begunItem }),
    'response.content_part.added': event('response.content_part.added', { ...inPart, part }),
    'response.output_text.delta': event('response.output_text.delta', { ...inPart, delta: z.string(), logprobs }),
    'response.output_text.done': event('response.output_text.done', { ...inPart, text: z.string(), logprobs }),
    'response.refusal.delta': event('response.refusal.delta', { ...inPart, delta: z.string() }),
    'response.refusal.done': event('response.refusal.done', { ...inPart, refusal: z.string() }),
    'response.content_part.done': event('response.content_part.done', { ...inPart, part }),
    'response.reasoning_summary_part.added': event('response.reasoning_summary_part.added', {
      ...inSummary,
      part: summaryPart,
    }),
    'response.reasoning_summary_text.delta': event('response.reasoning_summary_text.delta', {
      ...inSummary,
      delta: z.string(),
    }),
    'response.reasoning_summary_text.done': event('response.reasoning_summary_text.done', {
      ...inSummary,
      text: z.string(),
    }),
    'response.reasoning_summary_part.done': event('response.reasoning_summary_part.done', {
      ...inSummary,
      part: summaryPart,
    }),
    'response.function_call_arguments.delta': event('response.function_call_arguments.delta', {
      ...inItem,
      delta: z.string(),
    }),
    'response.function_call_arguments.done': event('response.function_call_arguments.done', {
      ...inItem,
      // In the vendor's published description and not in its SDK's types (responses-wire §8.3).
      name: ours(someText),
      arguments: z.string(),
    }),
    'response.output_item.done': event('response.output_item.done', { output_index: count, item: doneItem }),
    'response.completed': event('response.completed', { response: completed }),
    'response.incomplete': event('response.incomplete', { response: incomplete }),
    'response.failed': event('response.failed', { response: failed }),
  }
  return { begun, completed, incomplete, failed, begunItem, doneItem, usage, events }

  function idOf(prefix: string) {
    return isNative ? someText : z.string().startsWith(prefix)
  }
}

type OptionalText = z.ZodOptional<z.ZodString>
const incompleteReason = z.enum(['max_output_tokens', 'content_filter'])
const functionKeys = ['name', 'description', 'parameters', 'strict']
