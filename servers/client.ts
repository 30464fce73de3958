import type { ClientWire } from '../src/catalog/wire-names.ts'
import { chatClient } from './sdks/chat.ts'
import { messagesClient } from './sdks/messages.ts'
import { responsesClient } from './sdks/responses.ts'

/** A conversation and what is wanted of it, in words of no wire; each SDK's client writes it in its own. */
export type Ask = {
  turns: readonly Turn[]
  system?: string
  tools?: readonly Tool[]
  choice?: 'none' | 'required' | { name: string }
  stops?: readonly string[]
  cap?: number
  reasoning?: 'shown' | 'off'
  schema?: object
  signal?: AbortSignal
  /** Of a stream: some of its text is there. */
  onText?(): void
}

export type Turn =
  | { by: 'user'; text: string; imageBase64?: string }
  | { by: 'model'; text?: string; calls?: readonly Call[] }
  | { by: 'tool'; id: string; text: string }

export type Tool = { name: string; schema: object }
export type Call = { id: string; name: string; arguments: unknown }

/** What an SDK made of the answer. */
export type Told = {
  text: string
  reasoning: string
  calls: Call[]
  why: 'end' | 'calls' | 'cap' | 'stop'
  usage: { input: number; cached: number; output: number }
}

export type Client = {
  wire: ClientWire
  /** Whether the wire has a field for it. */
  can: { stop: boolean; countTokens: boolean }
  ask(model: string, asked: Ask, isStreamed: boolean): Promise<Told>
  countTokens?(model: string, text: string): Promise<number>
}

/** Where a client asks, and who hears the id of each request. */
export type Place = { url: string; key: string; onRequest(id: string): void }

/** The official SDK of a wire, which tries nothing twice. */
export function clientOf(wire: ClientWire, place: Place): Client {
  const makers = { messages: messagesClient, chat: chatClient, responses: responsesClient }
  return makers[wire](place)
}

/** The SDKs' fetch, which hears what a request is called. */
export function heardFetch({ onRequest }: Place): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    const id = response.headers.get('x-request-id')
    if (id !== null) onRequest(id)
    return response
  }
}
