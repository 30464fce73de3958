import { argumentsOfObject } from '../../inference/raw-arguments.ts'
import type {
  CacheMark,
  DocumentPart,
  ImagePart,
  ModelPart,
  OperatorText,
  OperatorTurn,
  TextPart,
  ToolResultPart,
  Turn,
  UserPart,
} from '../../inference/request.ts'
import { documentOf, readBase64, readMime } from '../media.ts'
import {
  type Body,
  isAbsent,
  type Json,
  type Losses,
  optional,
  readArray,
  readBoolean,
  readObject,
  readRawObject,
  readString,
  refusals,
  refuse,
} from '../reading.ts'

const param = 'messages'

/** The conversation; system turns before the first user or assistant turn are preamble (R-SYS 1). */
export function readTurns(body: Body, losses: Losses): { preamble: OperatorTurn[]; turns: Turn[] } {
  const preamble: OperatorTurn[] = []
  const turns: Turn[] = []
  for (const entry of readArray(body.fields['messages'], param)) {
    const message = readObject(entry, param, 'each entry')
    switch (message['role']) {
      case 'user':
        turns.push({ by: 'user', parts: readBlocks(message['content']).flatMap(readUserBlock) })
        break
      case 'assistant':
        turns.push({
          by: 'model',
          parts: readBlocks(message['content']).flatMap((block) => readModelBlock(block, body, losses)),
        })
        break
      case 'system': {
        // Newer clients send a system turn that only changes settings; without content there is nothing to say.
        const texts = isAbsent(message['content']) ? [] : readTextBlocks(message['content'], param)
        const turn: OperatorTurn = { by: 'operator', level: 'system', texts }
        if (turns.length > 0) turns.push(turn)
        else preamble.push(turn)
        break
      }
      default:
        refuse(param, '"messages": "role" must be one of user, assistant, system.')
    }
  }
  return { preamble, turns }
}

/** Text that may be a string or a list of text blocks: the same text is the same either way (ruling T14). */
export function readTextBlocks(content: unknown, field: string): OperatorText[] {
  if (typeof content === 'string') return [{ text: content }]
  return readArray(content, field, 'system text, if no string,').map((entry) => {
    const block = readObject(entry, field, 'each block')
    if (block['type'] !== 'text') refuse(field, `"${field}": system text has text blocks only.`)
    return { text: readString(block['text'], field, 'the text of a block'), ...marked(block) }
  })
}

export function cacheMark(block: Json): CacheMark | undefined {
  const mark = block['cache_control']
  if (typeof mark !== 'object' || mark === null) return undefined
  const { ttl } = mark as Json
  return ttl === '1h' || ttl === '5m' ? { ttl } : {}
}

function marked(block: Json): { cacheMark?: CacheMark } {
  const mark = cacheMark(block)
  return mark ? { cacheMark: mark } : {}
}

function readBlocks(content: unknown): Json[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return readArray(content, param, '"content", if no string,').map((entry) => readObject(entry, param, 'each block'))
}

function readUserBlock(block: Json): UserPart[] {
  return block['type'] === 'tool_result' ? [readToolResult(block)] : readContent(block)
}

function readToolResult(block: Json): ToolResultPart {
  const { content } = block
  const parts = isAbsent(content) ? [] : readBlocks(content).flatMap(readContent)
  return {
    type: 'tool_result',
    callId: readString(block['tool_use_id'], param, '"tool_use_id"'),
    // An empty text block says nothing that no content does not say.
    parts: parts.filter((part) => part.type !== 'text' || part.text !== ''),
    isError: optional(readBoolean, block['is_error'], param, '"is_error"') ?? false,
    ...marked(block),
  }
}

/** Text, images and documents, in user turns and in tool results. A block we do not know is not ours to drop here. */
function readContent(block: Json): (TextPart | ImagePart | DocumentPart)[] {
  switch (block['type']) {
    case 'text':
      return [{ ...readText(block), ...marked(block) }]
    case 'image':
      return [{ ...readImage(block), ...marked(block) }]
    case 'document':
      return readDocument(block)
    case 'search_result':
      return [{ type: 'text', text: searchResultText(block), ...marked(block) }]
    case 'tool_reference':
      return [{ type: 'text', text: `Tool loaded: ${readString(block['tool_name'], param, '"tool_name"')}` }]
  }
  refuse(param, '"messages": a block in a user turn has a type that this model cannot be given.')
}

function readText(block: Json): TextPart {
  return { type: 'text', text: readString(block['text'], param, 'the text of a block') }
}

function readImage(block: Json): ImagePart {
  const source = readObject(block['source'], param, '"source"')
  if (source['type'] !== 'base64') refuse(param, `"messages": ${refusals.remoteFile}`)
  return { type: 'image', mime: readMime(source['media_type'], param), base64: readBase64(source['data'], param) }
}

function readDocument(block: Json): (TextPart | ImagePart | DocumentPart)[] {
  const source = readObject(block['source'], param, '"source"')
  const title = optional(readString, block['title'], param, '"title"')
  const named = title ? { title } : {}
  switch (source['type']) {
    case 'base64': {
      const base64 = readBase64(source['data'], param)
      return [{ ...documentOf(readMime(source['media_type'], param), base64, title), ...marked(block) }]
    }
    case 'text':
      return [
        {
          type: 'document',
          mime: 'text/plain',
          text: readString(source['data'], param, '"data"'),
          ...named,
          ...marked(block),
        },
      ]
    case 'content': {
      const texts: string[] = []
      const images: ImagePart[] = []
      for (const inner of readBlocks(source['content'])) {
        if (inner['type'] === 'text') texts.push(readText(inner).text)
        else if (inner['type'] === 'image') images.push(readImage(inner))
        else refuse(param, '"messages": the content of a document has text and image blocks only.')
      }
      return [{ type: 'document', mime: 'text/plain', text: texts.join('\n'), ...named, ...marked(block) }, ...images]
    }
  }
  refuse(param, `"messages": ${refusals.remoteFile}`)
}

function searchResultText(block: Json): string {
  const title = readString(block['title'], param, '"title"')
  const source = readString(block['source'], param, '"source"')
  const texts = readBlocks(block['content']).map((inner) => readText(inner).text)
  return [title, source, ...texts].join('\n')
}

/** Assistant blocks. What we do not know is a record of the provider's own work: dropped and listed (ruling T14). */
function readModelBlock(block: Json, body: Body, losses: Losses): ModelPart[] {
  switch (block['type']) {
    case 'text':
      return [{ ...readText(block), ...marked(block) }]
    case 'tool_use': {
      const { input } = block
      return [
        {
          type: 'tool_call',
          callId: readString(block['id'], param, '"id" of a tool_use'),
          name: readString(block['name'], param, '"name" of a tool_use'),
          argumentsText: isAbsent(input)
            ? '{}'
            : argumentsOfObject(readRawObject(body, input, param, '"input" of a tool_use').source),
          ...marked(block),
        },
      ]
    }
    case 'thinking': {
      const text = optional(readString, block['thinking'], param, '"thinking"') ?? ''
      const signature = optional(readString, block['signature'], param, '"signature"')
      if (!signature) return [{ type: 'reasoning', text }]
      return [{ type: 'reasoning', text, sealed: { wire: 'messages', kind: 'signature', data: signature } }]
    }
    case 'redacted_thinking': {
      const data = readString(block['data'], param, '"data"')
      return [{ type: 'reasoning', text: '', sealed: { wire: 'messages', kind: 'redacted', data } }]
    }
  }
  losses.add(param, 'dropped', 'an assistant block of a kind that only its provider knows')
  return []
}
