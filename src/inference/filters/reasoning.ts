import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent } from '../answer.ts'

/**
 * Lets reasoning through if the client may see it (spec 2.2, 2.7) and it has text. A block with only a seal is shown
 * if the client asked for seals (ruling T7). The shown blocks are numbered anew, in the order in which they appear.
 */
export function gateReasoning(shows: boolean, wantsSealed: boolean): Step<AnswerEvent, AnswerEvent> {
  let count = 0
  /** The new numbers of the shown blocks; undefined for reasoning that may still be shown. */
  const numbers = new Map<number, number | undefined>()
  return { push, end: () => [] }

  function push(event: AnswerEvent): AnswerEvent[] {
    switch (event.type) {
      case 'block_start': {
        if (event.block.kind === 'reasoning') {
          if (shows) numbers.set(event.index, undefined)
          return []
        }
        const index = count++
        numbers.set(event.index, index)
        return [index === event.index ? event : { ...event, index }]
      }
      case 'block_delta':
      case 'block_seal': {
        if (!numbers.has(event.index) || (event.type === 'block_seal' && !wantsSealed)) return []
        const known = numbers.get(event.index)
        if (known !== undefined) return [known === event.index ? event : { ...event, index: known }]
        const index = count++
        numbers.set(event.index, index)
        return [
          { type: 'block_start', index, block: { kind: 'reasoning' } },
          { ...event, index },
        ]
      }
      case 'block_stop': {
        const index = numbers.get(event.index)
        numbers.delete(event.index)
        return index === undefined ? [] : [index === event.index ? event : { ...event, index }]
      }
      default:
        return [event]
    }
  }
}
