import type { z } from 'zod'
import { chatSchemas, modelList } from './chat.ts'
import { chatError, messagesError } from './errors.ts'
import { messagesSchemas } from './messages.ts'
import type { Mode } from './mode.ts'
import { responsesSchemas } from './responses.ts'

/** What was asked for: an answer on a wire, or one of the two that are no inference. */
export type Asked = 'messages' | 'chat' | 'responses' | 'count_tokens' | 'models'

const schemas = { translated: schemasOf('translated'), native: schemasOf('native') }

function schemasOf(mode: Mode) {
  return { messages: messagesSchemas(mode), chat: chatSchemas(mode), responses: responsesSchemas(mode) }
}

/**
 * What of a body a client may not be sent, in words; an empty list means that its types hold. A stream is checked event
 * by event, as far as it goes: their order is the grammar's matter.
 * @param status an error envelope is asked for from 400 on, with the type and code of this status
 */
export function checkAnswer(asked: Asked, mode: Mode, contentType: string, bodyText: string, status = 200): string[] {
  if (contentType.startsWith('text/event-stream')) return checkStream(asked, mode, bodyText)
  if (!contentType.startsWith('application/json')) return [`a body of type ${contentType}`]
  const body = parse(bodyText)
  if (body === undefined) return [`not JSON: ${bodyText.slice(0, 200)}`]
  return violationsOf('body', wholeSchema(asked, mode, body, status), body)
}

function wholeSchema(asked: Asked, mode: Mode, body: unknown, status: number): z.ZodType {
  const isMessages = asked === 'messages' || asked === 'count_tokens'
  if (status >= 400) return isMessages ? messagesError(status) : chatError(status)
  const { messages, chat, responses } = schemas[mode]
  if (asked === 'messages') return messages.message
  if (asked === 'count_tokens') return messages.tokenCount
  if (asked === 'chat') return chat.completion
  if (asked === 'models') return modelList
  return memberOf(body, 'status') === 'incomplete' ? responses.incomplete : responses.completed
}

function checkStream(asked: Asked, mode: Mode, text: string): string[] {
  const violations: string[] = []
  for (const { event, data } of framesOf(text)) {
    if (asked === 'chat' && data === '[DONE]') continue
    const object = parse(data)
    const type = memberOf(object, 'type')
    const name = asked === 'chat' ? 'chunk' : `${type}`
    if (object === undefined) violations.push(`not JSON: ${data.slice(0, 200)}`)
    else if (asked !== 'chat' && event !== type) violations.push(`event ${event} carries type ${type}`)
    else {
      const schema = eventSchema(asked, mode, object, name)
      if (schema) violations.push(...violationsOf(name, schema, object))
      else if (mode === 'translated') violations.push(`unknown event ${name}`)
    }
  }
  return violations
}

function eventSchema(asked: Asked, mode: Mode, object: unknown, type: string): z.ZodType | undefined {
  const { messages, chat, responses } = schemas[mode]
  if (asked === 'chat') {
    if (memberOf(object, 'error') !== undefined) return chatError()
    const choices = memberOf(object, 'choices')
    return Array.isArray(choices) && choices.length === 0 ? chat.usageChunk : chat.chunk
  }
  const events: Record<string, z.ZodType> = asked === 'messages' ? messages.events : responses.events
  return Object.hasOwn(events, type) ? events[type] : undefined
}

function violationsOf(name: string, schema: z.ZodType, value: unknown): string[] {
  const { error } = schema.safeParse(value)
  return error ? wordsOfIssues(name, error.issues) : []
}

function wordsOfIssues(name: string, issues: readonly z.core.$ZodIssue[]): string[] {
  return issues.flatMap((issue) => {
    const place = [name, ...issue.path.map(String)].join('.')
    // Of several shapes the first is the usual one.
    if (issue.code === 'invalid_union' && issue.errors[0]?.length) return wordsOfIssues(place, issue.errors[0])
    return [`${place}: ${issue.message}`]
  })
}

/** Whole events; what stands behind the last blank line was cut off. */
function framesOf(text: string): { event: string | undefined; data: string }[] {
  const pieces = text.split(/\r\n\r\n|\n\n|\r\r/).slice(0, -1)
  return pieces.flatMap((piece) => {
    const values = (field: string) =>
      piece.split(/\r\n|\n|\r/).flatMap((line) => {
        if (!line.startsWith(`${field}:`)) return []
        return [line.slice(field.length + (line[field.length + 1] === ' ' ? 2 : 1))]
      })
    const data = values('data').join('\n')
    return data === '' ? [] : [{ event: values('event').at(-1), data }]
  })
}

/** The model that an answer or a stream names, in the first event that does. */
export function modelNamed(contentType: string, bodyText: string): string | undefined {
  const texts = contentType.startsWith('text/event-stream') ? framesOf(bodyText).map(({ data }) => data) : [bodyText]
  for (const text of texts) {
    const object = parse(text)
    const holders = [object, memberOf(object, 'message'), memberOf(object, 'response')]
    const model = holders.map((holder) => memberOf(holder, 'model')).find((name) => typeof name === 'string')
    if (model !== undefined) return model
  }
  return undefined
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
}
