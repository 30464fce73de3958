/* The facts of the wires that the playground needs: their paths, and the smallest body of a request. */

export const clientWireNames = ['messages', 'chat', 'responses'] as const
export type ClientWire = (typeof clientWireNames)[number]

/** Returns the wire of this name. Undefined if no client uses such a wire: it may be a wire that only models use. */
export function findWire(name: string | undefined): ClientWire | undefined {
  return clientWireNames.find((wire) => wire === name)
}

/** The path of a request, below the address of the gateway. */
export const wirePaths: Readonly<Record<ClientWire, string>> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
}

export function questionBody(wire: ClientWire, model: string, question: string, isStream: boolean): object {
  const asked = [{ role: 'user', content: question }]
  if (wire === 'messages') return { model, max_tokens: 1024, messages: asked, stream: isStream }
  if (wire === 'responses') return { model, input: question, stream: isStream }
  return { model, messages: asked, stream: isStream, ...(isStream && { stream_options: { include_usage: true } }) }
}

type StreamEvent = { name: string; data: string }

/** Reads server-sent events. @returns a function that takes a piece of text, and returns the events it completes */
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

/** Formats JSON with line breaks. Other text is returned unchanged. */
export function spread(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
