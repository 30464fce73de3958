import type { ClientWire } from '../../../src/catalog/wire-names.ts'
import type { Json } from '../cases.ts'

/** An upstream's request as a person would tell it, line by line; a call and its result have the same number. */
export const transcripts: Record<ClientWire, (body: Json, text: string) => string[]> = {
  messages(body, text) {
    const calls = numbering()
    const inputs = [...text.matchAll(/"input":(\{[^}]*\})/g)].map(([, source]) => source!)
    return [
      ...lines('system', body['system']),
      ...body['messages'].flatMap((message: Json) =>
        blocksOf(message['content']).flatMap((block) => {
          switch (block['type']) {
            case 'text':
              return [`${message['role']}: ${block['text']}`]
            case 'thinking':
              return [`reasoning: ${block['thinking']}`]
            case 'image':
              return ['image']
            case 'tool_use':
              return [`call ${calls(block['id'])}: ${block['name']} ${inputs.shift()}`]
            case 'tool_result':
              return lines(`result ${calls(block['tool_use_id'])}`, block['content'])
          }
          return [`unknown ${block['type']}`]
        }),
      ),
    ]
  },
  chat(body) {
    const calls = numbering()
    return body['messages'].flatMap((message: Json) => {
      if (message['role'] === 'tool') return lines(`result ${calls(message['tool_call_id'])}`, message['content'])
      return [
        ...(message['reasoning_content'] ? [`reasoning: ${message['reasoning_content']}`] : []),
        ...(message['content'] ? lines(message['role'], message['content']) : []),
        ...(message['tool_calls'] ?? []).map(
          (call: Json) => `call ${calls(call['id'])}: ${call['function'].name} ${call['function'].arguments}`,
        ),
      ]
    })
  },
  responses(body) {
    const calls = numbering()
    return [
      ...(body['instructions'] ? [`system: ${body['instructions']}`] : []),
      ...body['input'].flatMap((item: Json) => {
        switch (item['type'] ?? 'message') {
          case 'message':
            return lines(item['role'], item['content'])
          case 'reasoning':
            return [`reasoning: ${item['summary'].map((part: Json) => part['text']).join('')}`]
          case 'function_call':
            return [`call ${calls(item['call_id'])}: ${item['name']} ${item['arguments']}`]
          case 'function_call_output':
            return lines(`result ${calls(item['call_id'])}`, item['output'])
        }
        return [`unknown ${item['type']}`]
      }),
    ]
  },
}

/** Text and images of a content; the line that points at an image that had to move is left out. */
function lines(who: string, content: unknown): string[] {
  return blocksOf(content).flatMap((part) => {
    if (/image/.test(part['type'])) return ['image']
    const text = String(part['text']).replace('\n[image attached below]', '')
    return text ? [`${who}: ${text}`] : []
  })
}

function blocksOf(content: unknown): Json[] {
  if (content === undefined || content === null) return []
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (content as Json[])
}

/** 1, 2, 3… in the order ids are first met. */
function numbering(): (id: string) => number {
  const known = new Map<string, number>()
  return (id) => {
    const number = known.get(id) ?? known.size + 1
    known.set(id, number)
    return number
  }
}
