import type { Json } from './case.ts'
import { parse } from './json.ts'
import type { SeenEvent } from './observation.ts'

/**
 * Reads server-sent events from text that comes in any pieces (WHATWG HTML, 9.2.6: lines end with CR LF, LF or CR; an empty line
 * ends an event; an event without data is not one).
 */
export class EventReader {
  #rest = ''
  #name: string | undefined
  #lines: string[] = []

  /** @returns the events that this piece completes */
  push(text: string): SeenEvent[] {
    this.#rest += text
    const events: SeenEvent[] = []
    for (;;) {
      // A CR at the end may be half of a CR LF.
      const end = /\r\n|\n|\r(?!$)/.exec(this.#rest)
      if (!end) return events
      const line = this.#rest.slice(0, end.index)
      this.#rest = this.#rest.slice(end.index + end[0].length)
      const event = this.#take(line)
      if (event) events.push(event)
    }
  }

  #take(line: string): SeenEvent | undefined {
    if (line === '') return this.#finish()
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line)!
    if (name === 'data') this.#lines.push(value!)
    else if (name === 'event') this.#name = value
    return undefined
  }

  #finish(): SeenEvent | undefined {
    const [name, lines] = [this.#name, this.#lines]
    this.#name = undefined
    this.#lines = []
    if (lines.length === 0) return undefined
    const text = lines.join('\n')
    const data: Json = text.startsWith('{') ? (parse(text) ?? text) : text
    return { ...(name === undefined ? {} : { event: name }), data }
  }
}
