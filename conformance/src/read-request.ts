import type { Json, Wire } from './case.ts'
import { compact, isObject, type JsonObject, listOf, objectOf, parse, textOf } from './json.ts'
import type { AskedReading } from './observation.ts'

type Turn = AskedReading['turns'][number]

/** Reads a request of a wire into a wire-neutral form. */
export function readRequest(wire: Wire, body: JsonObject): AskedReading {
  const read = readers[wire](body)
  return compact({
    model: body['model'] as Json,
    stream: body['stream'] === true,
    temperature: body['temperature'] as Json,
    topP: body['top_p'] as Json,
    ...read,
  })
}

type Read = Omit<AskedReading, 'model' | 'stream' | 'temperature' | 'topP'>

const operatorRoles = new Set<Json | undefined>(['system', 'developer'])

const readers: { [wire in Wire]: (body: JsonObject) => Read } = {
  chat(body) {
    const all = listOf(body['messages'])
    return {
      system: systemOf(all),
      turns: all
        .filter(({ role }) => !operatorRoles.has(role))
        .map((message) => {
          const turn = readParts(message['role'], message['content'])
          if (message['role'] === 'tool') {
            return { ...turn, text: '', results: [{ id: textOf(message['tool_call_id']), text: turn.text }] }
          }
          const calls = listOf(message['tool_calls']).map((call) => readCall(call['id'], objectOf(call['function'])))
          return { ...turn, calls, reasoning: textOf(message['reasoning_content']) }
        }),
      tools: listOf(body['tools']).map((tool) => readTool(objectOf(tool['function']), 'parameters')),
      toolChoice: choiceOf(body['tool_choice']),
      maxTokens: body['max_completion_tokens'] ?? body['max_tokens'],
      stops: listed(body['stop']),
      schema: objectOf(objectOf(body['response_format'])['json_schema'])['schema'],
      reasoning: body['reasoning_effort'],
    }
  },
  responses(body) {
    const input = body['input']
    const items = typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(input)
    const format = objectOf(objectOf(body['text'])['format'])
    return {
      system: [textOf(body['instructions']), systemOf(items)].filter(Boolean).join('\n'),
      turns: items.filter(({ role }) => !operatorRoles.has(role)).map(readItem),
      tools: listOf(body['tools']).map((tool) => readTool(tool, 'parameters')),
      toolChoice: choiceOf(body['tool_choice']),
      maxTokens: body['max_output_tokens'],
      schema: format['schema'],
      reasoning: objectOf(body['reasoning'])['effort'],
    }
  },
  messages(body) {
    const system = body['system']
    return {
      system: typeof system === 'string' ? system : textsOf(system),
      turns: listOf(body['messages']).map(({ role, content }) => readParts(role, content)),
      tools: listOf(body['tools']).map((tool) => readTool(tool, 'input_schema')),
      toolChoice: choiceOf(body['tool_choice']),
      maxTokens: body['max_tokens'],
      stops: body['stop_sequences'],
      schema:
        objectOf(objectOf(body['output_config'])['format'])['schema'] ?? objectOf(body['output_format'])['schema'],
      reasoning: objectOf(body['output_config'])['effort'] ?? objectOf(body['thinking'])['budget_tokens'],
    }
  },
}

function systemOf(turns: readonly JsonObject[]): string {
  const operators = turns.filter(({ role }) => operatorRoles.has(role))
  return operators.map(({ content }) => (typeof content === 'string' ? content : textsOf(content))).join('\n')
}

function textsOf(parts: Json | undefined): string {
  return listOf(parts)
    .map(({ text }) => textOf(text))
    .join('\n')
}

function readItem(item: JsonObject): Turn {
  switch (item['type']) {
    case 'function_call':
      return { ...emptyTurn('assistant'), calls: [readCall(item['call_id'], item)] }
    case 'function_call_output': {
      const { output } = item
      const text = typeof output === 'string' ? output : textsOf(output)
      return { ...emptyTurn('tool'), results: [{ id: textOf(item['call_id']), text }] }
    }
    case 'reasoning':
      return { ...emptyTurn('assistant'), reasoning: textsOf(item['summary']) || textsOf(item['content']) }
    default:
      return readParts(item['role'], item['content'])
  }
}

/** Reads the content of a turn: a text, or parts as any of the wires writes them. */
function readParts(role: Json | undefined, content: Json | undefined): Turn {
  const turn = emptyTurn(textOf(role))
  if (typeof content === 'string') return { ...turn, text: content }
  for (const part of listOf(content)) {
    switch (part['type']) {
      case 'text':
      case 'input_text':
      case 'output_text':
        turn.text += textOf(part['text'])
        break
      case 'thinking':
        turn.reasoning += textOf(part['thinking'])
        break
      case 'tool_use':
        turn.calls.push(compact({ id: textOf(part['id']), name: textOf(part['name']), input: part['input'] as Json }))
        break
      case 'tool_result': {
        const inner = part['content']
        turn.results.push({
          id: textOf(part['tool_use_id']),
          text: typeof inner === 'string' ? inner : textsOf(inner),
        })
        break
      }
      case 'image':
      case 'image_url':
      case 'input_image':
        turn.images.push(readSource(part['source'] ?? objectOf(part['image_url'])['url'] ?? part['image_url']))
        break
      case 'document':
      case 'file':
      case 'input_file':
        turn.files.push(readFile(part))
    }
  }
  return turn
}

type Source = Turn['images'][number]

/** Reads an image or a document: an address, a data URL, or a source of the messages wire. */
function readSource(source: Json | undefined): Source {
  if (typeof source === 'string') {
    const [, type, base64] = /^data:([^;,]*);base64,(.*)$/s.exec(source) ?? []
    return base64 === undefined ? { url: source } : { type: type!, base64 }
  }
  const { media_type, data, url } = objectOf(source)
  return compact({ type: media_type as string, base64: data as string, url: url as string })
}

function readFile(part: JsonObject): Turn['files'][number] {
  const file = part['type'] === 'file' ? objectOf(part['file']) : part
  const source = file['source'] ?? file['file_data'] ?? file['file_url']
  const name = file['filename'] ?? file['title']
  const id = file['file_id'] ?? objectOf(file['source'])['file_id']
  return compact({ name: name as string, id: id as string, ...readSource(source) })
}

function emptyTurn(role: string): Turn {
  return { role, text: '', reasoning: '', calls: [], results: [], images: [], files: [] }
}

function readCall(id: Json | undefined, { name, arguments: text }: JsonObject) {
  return compact({ id: textOf(id), name: textOf(name), input: parse(textOf(text)) as Json })
}

function readTool(tool: JsonObject, schema: string) {
  return compact({
    name: textOf(tool['name']),
    description: tool['description'] as Json,
    parameters: tool[schema] as Json,
  })
}

function choiceOf(choice: Json | undefined): string | undefined {
  if (typeof choice === 'string') return choice
  if (!isObject(choice)) return undefined
  if (choice['type'] === 'any') return 'required'
  return textOf(choice['name']) || textOf(objectOf(choice['function'])['name']) || textOf(choice['type'])
}

function listed(value: Json | undefined): Json | undefined {
  return value === undefined || value === null || Array.isArray(value) ? (value ?? undefined) : [value]
}
