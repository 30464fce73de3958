import type { ClientWire } from '../src/catalog/wire-names.ts'
import { chatClient } from './sdks/chat.ts'
import { messagesClient } from './sdks/messages.ts'
import { responsesClient } from './sdks/responses.ts'

/** A request in a wire-neutral form. The client of each SDK writes it for its own wire. */
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
  /** Called when a stream has brought some text. */
  onText?(): void
}

export type Turn =
  | { by: 'user'; text: string; imageBase64?: string }
  | { by: 'model'; text?: string; calls?: readonly Call[] }
  | { by: 'tool'; id: string; text: string }

export type Tool = { name: string; schema: object }
export type Call = { id: string; name: string; arguments: unknown }

/** An answer as an SDK read it. */
export type Told = {
  text: string
  reasoning: string
  calls: Call[]
  why: 'end' | 'calls' | 'cap' | 'stop'
  usage: { input: number; cached: number; output: number }
}

export type Client = {
  wire: ClientWire
  /** Whether the wire can do this. */
  can: { stop: boolean; countTokens: boolean }
  ask(model: string, asked: Ask, isStreamed: boolean): Promise<Told>
  countTokens?(model: string, text: string): Promise<number>
}

/** The server that a client asks. @property onRequest called with the id of each request */
export type Place = { url: string; key: string; onRequest(id: string): void }

/** Creates a client with the official SDK of a wire. It does not retry inference. */
export function clientOf(wire: ClientWire, place: Place): Client {
  const makers = { messages: messagesClient, chat: chatClient, responses: responsesClient }
  return makers[wire](place)
}

/** Returns a `fetch` for SDKs that reports the id of each request. */
export function heardFetch({ onRequest }: Place): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    const id = response.headers.get('x-request-id')
    if (id !== null) onRequest(id)
    return response
  }
}
