import assert from 'node:assert/strict'
import { test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { writeAnswer, writeStream } from '../../conformance/src/answer.ts'
import type { Json, Reply, ScriptedEvent, Wire } from '../../conformance/src/case.ts'
import { wires } from '../../conformance/src/case.ts'
import { isObject, type JsonObject } from '../../conformance/src/json.ts'
import { loadCases } from '../../conformance/src/load-cases.ts'
import { replaceModel } from '../../conformance/src/replace.ts'
import { clientWires } from '../../conformance/src/wires/index.ts'

const question = { model: 'm', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] }

/** Reads a stream with the vendor's SDK, and returns the answer as the body of the wire. */
const readers: { [wire in Wire]: (answer: () => Response) => Promise<object> } = {
  chat: (answer) => {
    const client = new OpenAI({
      apiKey: 'k',
      baseURL: 'http://127.0.0.1:9/v1',
      maxRetries: 0,
      fetch: async () => answer(),
    })
    return client.chat.completions.stream({ model: 'm', messages: question.messages }).finalChatCompletion()
  },
  responses: (answer) => {
    const client = new OpenAI({
      apiKey: 'k',
      baseURL: 'http://127.0.0.1:9/v1',
      maxRetries: 0,
      fetch: async () => answer(),
    })
    return client.responses.stream({ model: 'm', input: 'Hi' }).finalResponse()
  },
  messages: (answer) => {
    const client = new Anthropic({
      apiKey: 'k',
      baseURL: 'http://127.0.0.1:9',
      maxRetries: 0,
      fetch: async () => answer(),
    })
    return client.messages.stream(question).finalMessage()
  },
}

/** The events of the good answers of a wire, each once, by the case. */
function goodStreams(wire: Wire): Map<string, ScriptedEvent[]> {
  const found = new Map<string, ScriptedEvent[]>()
  for (const { id, area, model = {} } of loadCases()) {
    // Models of these areas send on purpose what no SDK reads.
    if (area === 'robustness' || area === 'errors') continue
    for (const [name, { exchanges }] of Object.entries(model)) {
      if (name !== wire && name !== '*') continue
      for (const { reply } of exchanges) {
        const events = eventsOf(wire, replaceModel(reply as unknown as Json, 'm') as unknown as Reply)
        if (events && !found.has(id)) found.set(id, events)
      }
    }
  }
  return found
}

function eventsOf(wire: Wire, reply: Reply): ScriptedEvent[] | undefined {
  if ((reply.status ?? 200) >= 400 || reply.cutAfterBytes !== undefined) return undefined
  if (reply.events) return reply.events.every((event) => 'data' in event) ? reply.events : undefined
  const body = reply.answer ? writeAnswer(wire, reply.answer, 'm') : reply.json
  return isObject(body) && (body['choices'] || body['output'] || body['content'])
    ? writeStream(wire, body, {})
    : undefined
}

function toBytes(events: readonly ScriptedEvent[]): string {
  return events
    .map((event) => {
      const { event: name, data } = event as { event?: string; data: Json }
      const type = name ?? (isObject(data) ? data['type'] : undefined)
      return `${type ? `event: ${type}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
    })
    .join('')
}

for (const wire of wires) {
  test(`the vendor’s SDK reads the good answers of ${wire} models as the suite does`, async () => {
    const streams = goodStreams(wire)
    let read = 0
    for (const [id, events] of streams) {
      const bytes = toBytes(events)
      const reader = clientWires[wire]
      const { body, isEnded } = reader.collect(events.map((event) => (event as { data: Json }).data))
      if (!isEnded) continue
      read++
      const answer = () => new Response(bytes, { headers: { 'content-type': 'text/event-stream' } })
      const theirs = reader.read((await readers[wire](answer)) as JsonObject)
      const ours = reader.read(body)
      const pick = ({ text, refusal, calls, stop, usage }: typeof ours) => {
        return {
          text,
          refusal,
          stop,
          usage: { ...usage },
          calls: calls.map(({ id, name, input }) => ({ id, name, input })),
        }
      }
      assert.deepEqual(pick(theirs), pick(ours), id)
    }
    assert.ok(read > 30, `${read} streams with an end`)
  })
}
