type Service = Record<string, unknown>

/** Members about how an answer was served, such as a tier: those of the answer, and those of its usage. */
export type Said = { answer?: Service; usage?: Service }

/** Adds the members to an answer, a chunk, a message or a response, and to its usage if there is one. */
export function withService(object: Service, { answer, usage }: Said): Service {
  const counted = object['usage'] as Service | undefined
  return { ...object, ...answer, ...(counted && { usage: { ...counted, ...usage } }) }
}

/** Adds the members to the answer in a frame. */
export function inFrame(frame: string, said: Said): string {
  const at = frame.indexOf('{')
  if (at < 0) return frame
  const event = JSON.parse(frame.slice(at)) as Service
  for (const holder of ['message', 'response'])
    if (event[holder]) event[holder] = withService(event[holder] as Service, said)
  const isAnswer = event['choices'] !== undefined || event['type'] === 'message_delta'
  return `${frame.slice(0, at)}${JSON.stringify(isAnswer ? withService(event, said) : event)}\n\n`
}
