import { atEnd } from '../support/at-end.ts'
import { until } from '../support/waiting.ts'

export type ReadEvent = { id: string | undefined; event: string | undefined; data: Record<string, unknown> }

/** Reads `/api/v1/events` for as long as a test runs. */
export async function readEvents(adminUrl: string, headers: Record<string, string>) {
  const abort = new AbortController()
  atEnd(() => abort.abort())
  const response = await fetch(`${adminUrl}/api/v1/events`, { headers, signal: abort.signal })
  const events: ReadEvent[] = []
  let text = ''
  let isOver = false
  void pump().catch(() => {
    isOver = true
  })
  return {
    response,
    events,
    isOver: () => isOver,
    text: () => text,
    close: () => abort.abort(),
    /** Waits for so many of a kind. */
    async wait(event: string, count = 1, push: () => void = () => {}) {
      const found = () => events.filter((one) => one.event === event)
      await until(() => {
        push()
        return found().length >= count
      }, `${count} of ${event}`)
      return found()
    },
  }

  async function pump(): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const piece of response.body ?? []) {
      const read = decoder.decode(piece, { stream: true })
      text += read
      const parts = (rest + read).split('\n\n')
      rest = parts.pop()!
      for (const part of parts) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(part)?.[1]
        const data = field('data')
        if (data !== undefined) events.push({ id: field('id'), event: field('event'), data: JSON.parse(data) })
      }
    }
    isOver = true
  }
}
