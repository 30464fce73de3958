/* The facts of the wires that the playground needs: the smallest body of a request, and the place of the text in an answer. */

export const clientWireNames = ['messages', 'chat', 'responses'] as const
export type ClientWire = (typeof clientWireNames)[number]

export function questionBody(wire: ClientWire, model: string, question: string, isStream: boolean): object {
  const asked = [{ role: 'user', content: question }]
  if (wire === 'messages') return { model, max_tokens: 1024, messages: asked, stream: isStream }
  if (wire === 'responses') return { model, input: question, stream: isStream }
  return { model, messages: asked, stream: isStream, ...(isStream && { stream_options: { include_usage: true } }) }
}

export type Piece = { kind: 'text' | 'reasoning'; text: string }

/** The text that an event of a stream adds to the answer. */
export function pieceOf(wire: ClientWire, data: unknown): Piece | undefined {
  const event = data as Loose
  if (wire === 'messages') {
    const { delta } = event
    if (typeof delta?.['thinking'] === 'string') return { kind: 'reasoning', text: delta['thinking'] }
    return typeof delta?.['text'] === 'string' ? { kind: 'text', text: delta['text'] } : undefined
  }
  if (wire === 'responses') {
    if (typeof event.delta !== 'string') return undefined
    if (event.type === 'response.output_text.delta') return { kind: 'text', text: event.delta }
    return /reasoning/.test(event.type ?? '') ? { kind: 'reasoning', text: event.delta } : undefined
  }
  const delta = event.choices?.[0]?.delta
  if (typeof delta?.content === 'string' && delta.content !== '') return { kind: 'text', text: delta.content }
  const reasoning = delta?.reasoning_content
  return typeof reasoning === 'string' && reasoning !== '' ? { kind: 'reasoning', text: reasoning } : undefined
}

/** The text of an answer that is no stream. */
export function textOf(wire: ClientWire, body: unknown): string {
  const answer = body as Loose
  if (wire === 'messages') return (answer.content ?? []).map(({ text }) => text ?? '').join('')
  if (wire === 'responses')
    return (answer.output ?? [])
      .flatMap(({ content }) => content ?? [])
      .map(({ text }) => text ?? '')
      .join('')
  return answer.choices?.[0]?.message?.content ?? ''
}

type Texted = { text?: string }
type Loose = {
  type?: string
  delta?: (Record<string, unknown> & string) | undefined
  choices?: { delta?: { content?: string; reasoning_content?: string }; message?: { content?: string } }[]
  content?: Texted[]
  output?: { content?: Texted[] }[]
}

export type StreamEvent = { name: string; data: string }

/** Reads server-sent events from pieces of text. @returns a function that takes a piece and returns the events it completes */
export function eventReader(): (piece: string) => StreamEvent[] {
  let rest = ''
  return (piece) => {
    rest += piece
    const blocks = rest.split(/\r\n\r\n|\n\n|\r\r/)
    rest = blocks.pop()!
    return blocks.flatMap((block) => {
      const lines = block.split(/\r\n|\n|\r/)
      const valuesOf = (field: string) =>
        lines
          .filter((line) => line.startsWith(`${field}:`))
          .map((line) => line.slice(field.length + 1).replace(/^ /, ''))
      const data = valuesOf('data').join('\n')
      return data === '' ? [] : [{ name: valuesOf('event')[0] ?? '', data }]
    })
  }
}

/** Formats JSON over several lines; other text stays as it is. */
export function spread(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
