import { asObject } from '../../bytes/json.ts'
import { joinTexts, type Text } from '../../bytes/json-source.ts'
import { splitPreamble } from '../../inference/normalise.ts'
import { argumentsOfObject } from '../../inference/raw-arguments.ts'
import { isReasoningLevel, type ReasoningLevel } from '../../inference/reasoning.ts'
import type {
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
import type { Losses } from '../requests/losses.ts'
import { documentOf, imageMime, readBase64, readMime } from '../requests/media.ts'
import {
  type Body,
  isAbsent,
  type Json,
  optional,
  optionalText,
  readBoolean,
  readContent,
  readEach,
  readObject,
  readParts,
  readRawObject,
  readString,
  readText,
} from '../requests/read-value.ts'
import { refusals, refuse, wrongType } from '../requests/refusals.ts'

const field = 'messages'

/** A change of the offered tools, made by a system turn and valid from that turn on (ruling T20). */
export type ToolChange =
  | { kind: 'added' | 'removed'; name: string }
  /** A tool declared in the conversation, and its place. */
  | { kind: 'defined'; tool: unknown; at: string }

type MessagesConversation = {
  preamble: OperatorTurn[]
  turns: Turn[]
  toolChanges: ToolChange[]
  /** The effort that `output_config` of a system turn sets. If several turns set an effort, the last turn counts. */
  effort: ReasoningLevel | undefined
}

/** Reads the conversation. System turns before the first user or assistant turn are the preamble (R-SYS 1). */
export function readTurns(body: Body, losses: Losses): MessagesConversation {
  const toolChanges: ToolChange[] = []
  let effort: ReasoningLevel | undefined
  const turns = joinModelTurns(readEach(body.fields[field], field, readMessage))
  return { ...splitPreamble(turns), toolChanges, effort }

  function readMessage(entry: unknown, at: string): Turn {
    const message = readObject(entry, at)
    const { content } = message
    const place = `${at}.content`
    switch (message['role']) {
      case 'user':
        return { by: 'user', parts: readParts(body, content, place, 'text', readOwnBlock) }
      case 'assistant':
        return {
          by: 'model',
          parts: readParts(body, content, place, 'text', readAssistantBlock),
        }
      case 'system': {
        noteEffort(message['output_config'])
        // Newer clients send system turns that only change settings and have no content.
        return { by: 'operator', level: 'system', texts: isAbsent(content) ? [] : readSystemTurn(content, place) }
      }
    }
    throw wrongType(`${at}.role`, 'one of user, assistant, system')
  }

  function readOwnBlock(block: Json, at: string): UserPart[] {
    return readUserBlock(block, at, body, losses)
  }

  function readAssistantBlock(block: Json, at: string): ModelPart[] {
    return readModelBlock(block, at, body, losses)
  }

  function noteEffort(config: unknown): void {
    if (isAbsent(config)) return
    const object = asObject(config)
    const word = object?.['effort']
    if (typeof word === 'string' && isReasoningLevel(word)) effort = word
    else if (!object || !isAbsent(word)) losses.add(`${field}.output_config`, 'dropped', 'no effort that is known here')
  }

  function readSystemTurn(content: unknown, at: string): OperatorText[] {
    return readContent(body, content, at, 'text', (block, place) => {
      const kind = toolChangeKinds.get(block['type'])
      if (kind === undefined) return [readSystemBlock(block, place, body)]
      losses.add(`${field}.${block['type']}`, 'dropped', 'tools are offered from the beginning, or not at all')
      toolChanges.push(readToolChange(kind, block, place))
      return []
    }).flat()
  }
}

const toolChangeKinds = new Map<unknown, 'added' | 'removed'>([
  ['tool_addition', 'added'],
  ['tool_removal', 'removed'],
])

function readToolChange(kind: 'added' | 'removed', block: Json, at: string): ToolChange {
  const tool = readObject(block['tool'], `${at}.tool`)
  if (kind === 'added' && tool['type'] === 'tool_definition')
    return { kind: 'defined', tool: tool['definition'], at: `${at}.tool.definition` }
  if (tool['type'] !== 'tool_reference') refuse(`${at}.tool`, refusals.hostedTool)
  return { kind, name: readString(tool['name'], `${at}.tool.name`) }
}

/**
 * Joins neighbouring assistant turns, as this wire's vendor does. On other wires, the results must directly follow the
 * turn that has the calls (ruling T21).
 */
function joinModelTurns(turns: readonly Turn[]): Turn[] {
  const joined: Turn[] = []
  for (const turn of turns) {
    // An operator's turn without text only changed settings, so it does not separate two turns of the model.
    if (turn.by === 'operator' && turn.texts.length === 0) continue
    const last = joined.at(-1)
    if (turn.by === 'model' && last?.by === 'model') last.parts.push(...turn.parts)
    else joined.push(turn)
  }
  return joined
}

/** Reads text that is a string or a list of text blocks. Both forms give the same text (ruling T14). */
export function readSystemText(body: Body, content: unknown, at: string): OperatorText[] {
  return readContent(body, content, at, 'text', readSystemBlock)
}

function readSystemBlock(block: Json, at: string, body: Body): OperatorText {
  if (block['type'] !== 'text') refuse(at, 'system text has text blocks only.')
  return { text: readText(body, block['text'], `${at}.text`) }
}

function readUserBlock(block: Json, at: string, body: Body, losses: Losses): UserPart[] {
  return block['type'] === 'tool_result'
    ? [readToolResult(block, at, body, losses)]
    : readMedia(block, at, body, losses)
}

function readToolResult(block: Json, at: string, body: Body, losses: Losses): ToolResultPart {
  const { content } = block
  const read = (one: Json, place: string) => readMedia(one, place, body, losses)
  const parts = isAbsent(content) ? [] : readParts(body, content, `${at}.content`, 'text', read)
  return {
    type: 'tool_result',
    callId: readString(block['tool_use_id'], `${at}.tool_use_id`),
    // Empty text blocks are dropped, since they mean nothing.
    parts: parts.every(saysSomething) ? parts : parts.filter(saysSomething),
    isError: optional(readBoolean, block['is_error'], `${at}.is_error`) ?? false,
  }
}

function saysSomething(part: TextPart | ImagePart | DocumentPart): boolean {
  return part.type !== 'text' || part.text !== ''
}

/** Reads text, images and documents in user turns and tool results. Unknown blocks are refused here, not dropped. */
function readMedia(block: Json, at: string, body: Body, losses: Losses): (TextPart | ImagePart | DocumentPart)[] {
  switch (block['type']) {
    case 'text':
      return [readTextBlock(block, at, body)]
    case 'image':
      return [readImage(block, at)]
    case 'document':
      noteCitations(block, losses)
      return [...readContext(block, at), ...readDocument(block, at, body)]
    case 'search_result':
      noteCitations(block, losses)
      return [{ type: 'text', text: readSearchResult(block, at, body) }]
    case 'tool_reference':
      return [{ type: 'text', text: `Tool loaded: ${readString(block['tool_name'], `${at}.tool_name`)}` }]
  }
  refuse(at, 'this model cannot be given a block of this type in a user turn; text, images and documents can be sent.')
}

function noteCitations(block: Json, losses: Losses): void {
  if (asObject(block['citations'])?.['enabled'] === true) losses.add('citations', 'dropped', 'no other wire has it')
}

function readTextBlock(block: Json, at: string, body: Body): TextPart {
  return { type: 'text', text: readText(body, block['text'], `${at}.text`) }
}

function readImage(block: Json, at: string): ImagePart {
  const place = `${at}.source`
  const source = readObject(block['source'], place)
  if (source['type'] !== 'base64') refuse(place, refusals.remoteFile)
  const base64 = readBase64(source['data'], `${place}.data`)
  const mime = imageMime(readMime(source['media_type'], `${place}.media_type`), base64, `${place}.media_type`)
  return { type: 'image', at, mime, base64 }
}

function readDocument(block: Json, at: string, body: Body): (TextPart | ImagePart | DocumentPart)[] {
  const place = `${at}.source`
  const source = readObject(block['source'], place)
  const title = optional(readString, block['title'], `${at}.title`)
  switch (source['type']) {
    case 'base64': {
      const base64 = readBase64(source['data'], `${place}.data`)
      return [documentOf(at, readMime(source['media_type'], `${place}.media_type`), base64, title)]
    }
    case 'text':
      return [textDocument(at, readString(source['data'], `${place}.data`), title)]
    case 'content':
      return documentRuns(at, readContent(body, source['content'], `${place}.content`, 'text', readInnerBlock), title)
  }
  refuse(place, refusals.remoteFile)
}

/** Splits a document of texts and images. Text between two images may describe them, so it stays in its place. */
function documentRuns(at: string, inner: readonly (TextPart | ImagePart)[], title?: string) {
  const runs: (TextPart | ImagePart | DocumentPart)[] = []
  let run: DocumentPart | undefined
  for (const part of inner) {
    if (part.type === 'image') {
      runs.push(part)
      run = undefined
    } else if (run) run.text += `\n${part.text.toString()}`
    else {
      run = textDocument(at, part.text.toString(), runs.length === 0 ? title : undefined)
      runs.push(run)
    }
  }
  return !title || runs[0]?.type === 'document' ? runs : [{ type: 'text' as const, text: title }, ...runs]
}

function textDocument(at: string, text: string, title?: string): DocumentPart {
  return { type: 'document', at, mime: 'text/plain', text, ...(title ? { title } : {}) }
}

/**
 * The client's context for a document. Other wires have no member for this text, so it precedes the document (R-DOC).
 */
function readContext(block: Json, at: string): TextPart[] {
  const text = optional(readString, block['context'], `${at}.context`)
  return text ? [{ type: 'text', text }] : []
}

function readInnerBlock(block: Json, at: string, body: Body): TextPart | ImagePart {
  if (block['type'] === 'text') return readTextBlock(block, at, body)
  if (block['type'] === 'image') return readImage(block, at)
  refuse(at, 'the content of a document has text and image blocks only.')
}

function readSearchResult(block: Json, at: string, body: Body): Text {
  const title = readString(block['title'], `${at}.title`)
  const from = readString(block['source'], `${at}.source`)
  const texts = readContent(body, block['content'], `${at}.content`, 'text', readTextBlock).map((part) => part.text)
  return joinTexts([title, from, ...texts], '\n')
}

/**
 * Reads an assistant block. Unknown blocks are records of what the provider's own tools did. They are dropped and
 * logged (ruling T14).
 */
function readModelBlock(block: Json, at: string, body: Body, losses: Losses): ModelPart[] {
  switch (block['type']) {
    case 'text':
      return [readTextBlock(block, at, body)]
    case 'tool_use': {
      const { input } = block
      return [
        {
          type: 'tool_call',
          callId: readString(block['id'], `${at}.id`),
          name: readString(block['name'], `${at}.name`),
          argumentsText: isAbsent(input) ? '{}' : argumentsOfObject(readRawObject(body, input, `${at}.input`).source),
        },
      ]
    }
    // The signature proves the thinking only to models of this wire, so it is not read here.
    case 'thinking':
      return [{ type: 'reasoning', text: optionalText(body, block['thinking'], `${at}.thinking`) ?? '' }]
    case 'redacted_thinking':
      return [{ type: 'reasoning', text: '' }]
    // The model's summary of the earlier conversation. The model's own provider ignores everything before the summary.
    case 'compaction': {
      const { content: text } = block
      if (typeof text === 'string' && text !== '') return [{ type: 'text', text: readText(body, text, at) }]
    }
  }
  losses.add(field, 'dropped', 'an assistant block of a kind that only its provider knows')
  return []
}
