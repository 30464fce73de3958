import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent } from '../answer.ts'

export type ThinkTags = { open: string; close: string; implicitOpen: boolean }

/**
 * Reasoning that a model writes into its text between tags, made into a block of its own. Only the beginning of the
 * first text counts: later tags are literal text, since a model may well write about them.
 */
export function splitThinkTags(tags: ThinkTags): Step<AnswerEvent, AnswerEvent> {
  /** `before`: an open tag may come. `inside`: until the close tag. `behind`: blanks before the text are dropped. */
  let state: 'before' | 'inside' | 'behind' | 'outside' = 'before'
  /** Text that could be the beginning of a tag. */
  let withheld = ''
  /** Before it; only ever appended to, since there may be many, one by one. */
  let blanks = ''
  let count = 0
  /** The text block being read, and what is open on our side for it. */
  let reading: number | undefined
  let open: { index: number; kind: 'text' | 'reasoning' } | undefined
  const numbers = new Map<number, number>()
  let events: AnswerEvent[] = []
  return { push, end: () => [] }

  function push(event: AnswerEvent): AnswerEvent[] {
    events = []
    switch (event.type) {
      case 'block_start':
        if (event.block.kind === 'text' && state !== 'outside' && reading === undefined) reading = event.index
        else {
          numbers.set(event.index, count)
          events.push({ ...event, index: count++ })
        }
        break
      case 'block_delta':
        if (event.index === reading) read(event.text)
        else events.push({ ...event, index: numbers.get(event.index)! })
        break
      case 'block_seal':
        events.push({ ...event, index: numbers.get(event.index)! })
        break
      case 'block_stop':
        if (event.index !== reading) {
          events.push({ ...event, index: numbers.get(event.index)! })
          break
        }
        if (state === 'before' && tags.implicitOpen) state = 'inside'
        if (state !== 'behind') write(state === 'inside' ? 'reasoning' : 'text', blanks + withheld)
        stop(event.cut)
        withheld = ''
        blanks = ''
        state = 'outside'
        reading = undefined
        break
      default:
        events.push(event)
    }
    return events
  }

  function read(text: string) {
    let rest = withheld + text
    withheld = ''
    if (state === 'before') {
      const begin = rest.trimStart()
      blanks += rest.slice(0, rest.length - begin.length)
      if (tags.open.startsWith(begin) && begin !== tags.open) {
        withheld = begin
        return
      }
      if (begin.startsWith(tags.open)) {
        state = 'inside'
        rest = begin.slice(tags.open.length)
      } else {
        state = tags.implicitOpen ? 'inside' : 'outside'
        rest = blanks + begin
      }
      blanks = ''
    }
    if (state === 'inside') {
      const at = rest.indexOf(tags.close)
      if (at < 0) {
        const keep = overlap(rest, tags.close)
        withheld = rest.slice(rest.length - keep)
        write('reasoning', rest.slice(0, rest.length - keep))
        return
      }
      write('reasoning', rest.slice(0, at))
      stop(false)
      state = 'behind'
      rest = rest.slice(at + tags.close.length)
    }
    if (state === 'behind') {
      rest = rest.trimStart()
      if (rest === '') return
      state = 'outside'
    }
    write('text', rest)
  }

  function write(kind: 'text' | 'reasoning', text: string) {
    if (text === '') return
    if (open?.kind !== kind) {
      stop(false)
      open = { index: count++, kind }
      events.push({ type: 'block_start', index: open.index, block: { kind } })
    }
    events.push({ type: 'block_delta', index: open.index, text })
  }

  function stop(cut: boolean) {
    if (open) events.push({ type: 'block_stop', index: open.index, cut })
    open = undefined
  }
}

/** How many characters at the end of the text could be the beginning of the tag. */
function overlap(text: string, tag: string): number {
  for (let size = Math.min(tag.length - 1, text.length); size > 0; size--)
    if (text.endsWith(tag.slice(0, size))) return size
  return 0
}
