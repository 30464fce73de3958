import { appendOwn } from '../../bytes/memory.ts'
import { isJsonObject } from '../../bytes/scan.ts'
import type { AnswerEvent, Fault } from '../answer.ts'
import { cutsBlocks } from '../narrator.ts'

const brokenCall: Fault = { kind: 'broken', text: 'The model sent a broken call.', unread: 'no_answer' }

/** Whether a text is empty or only JSON white space. */
export function isBlankJson(text: string): boolean {
  return /^[ \t\n\r]*$/.test(text)
}

/** The longest valid arguments in characters, which equals the limit of a translated answer. */
const charactersMax = 32 * 1_048_576

/**
 * Fails an answer if a call's arguments are neither blank nor one whole object (ruling Y5). When such a call stops, the
 * client would run it with wrong arguments or none. So the stop is withheld until the reason for the answer's end is
 * known. If the answer was cut, only its last block may be broken. Blank arguments become `{}`, because blank text is
 * not valid JSON.
 * @param decode converts a call's joined deltas to its arguments
 */
export function requireWholeCalls(decode = (text: string) => text) {
  /** The arguments of the calls that have not stopped, by block. */
  const texts = new Map<number, string>()
  const withheld: (AnswerEvent & { type: 'block_stop' })[] = []
  let last = -1
  return { push, end: (): AnswerEvent[] => [] }

  function push(event: AnswerEvent): AnswerEvent[] {
    switch (event.type) {
      case 'block_start':
        last = event.index
        if (event.block.kind === 'tool_call') texts.set(event.index, '')
        return [event]
      case 'block_delta': {
        const before = texts.get(event.index)
        if (before === undefined) return [event]
        texts.set(event.index, before.length < charactersMax ? appendOwn(before, event.text) : 'too long')
        return [event]
      }
      case 'block_stop': {
        if (isBroken(event.index)) {
          withheld.push(event)
          return []
        }
        const isBlank = isBlankJson(decode(texts.get(event.index) ?? '{'))
        texts.delete(event.index)
        return isBlank && !event.cut ? [{ type: 'block_delta', index: event.index, text: '{}' }, event] : [event]
      }
      case 'finish': {
        const broken = [...texts.keys()].filter(isBroken)
        const isCut = cutsBlocks[event.reason] && broken.every((index) => index === last)
        return isCut || broken.length === 0 ? [...withheld, event] : push({ type: 'fail', fault: brokenCall })
      }
      case 'fail':
        return [...withheld.map((stop) => ({ ...stop, cut: true })), event]
      default:
        return [event]
    }
  }

  function isBroken(index: number): boolean {
    const text = decode(texts.get(index) ?? '')
    return !isBlankJson(text) && !isJsonObject(text)
  }
}
