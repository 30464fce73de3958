type Service = Record<string, unknown>

/** The words of an answer about its service, in its own members and in its usage. */
export type Said = { answer?: Service; usage?: Service }

/** An answer, a chunk, a message or a response that says it. Of the usage only where there is one. */
export function withService(object: Service, { answer, usage }: Said): Service {
  const counted = object['usage'] as Service | undefined
  return { ...object, ...answer, ...(counted && { usage: { ...counted, ...usage } }) }
}

/** A frame whose answer, or part of one, says it. */
export function inFrame(frame: string, said: Said): string {
  const at = frame.indexOf('{')
  if (at < 0) return frame
  const event = JSON.parse(frame.slice(at)) as Service
  for (const holder of ['message', 'response'])
    if (event[holder]) event[holder] = withService(event[holder] as Service, said)
  const isAnswer = event['choices'] !== undefined || event['type'] === 'message_delta'
  return `${frame.slice(0, at)}${JSON.stringify(isAnswer ? withService(event, said) : event)}\n\n`
}
