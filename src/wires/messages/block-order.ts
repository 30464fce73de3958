import { type RawFrame, withData } from '../../bytes/frame-cutter.ts'
import { asObject } from '../../bytes/json.ts'
import { blocksMax } from '../../inference/narrator.ts'
import { JsonPatch } from '../answers/json-patch.ts'

type Event = Record<string, unknown>

/** A text or thinking block that the upstream has not stopped. */
type OpenBlock = { number: unknown; shownAs: number; kind: string }

/**
 * The blocks of a messages stream for a messages client. Clients read one block after the other, by dense numbers (spec
 * 6.1). Some servers keep thinking open while text streams and stop it late, or give a number twice (ruling U7). Blocks
 * that overlap are shown one after the other. The next block ends the one before, text that comes later is another
 * block, and a late stop or signature is ignored. Calls may overlap each other, and keep their numbers.
 */
export class BlockOrder {
  /** From here on numbers differ, or a block was ended by us. */
  #isMended = false
  #count = 0
  #open: OpenBlock | undefined
  /** The number under which an upstream's block is shown, or the kind of the block that we ended under its number. */
  readonly #numbers = new Map<unknown, number | { endedKind: string }>()

  /** Whether a delta has to be looked into. */
  get concernsDeltas(): boolean {
    return this.#isMended
  }

  /** No answer has more: what was said of each is kept until it is stopped. */
  get isFull(): boolean {
    return this.#count >= blocksMax
  }

  start(frame: RawFrame, data: string, event: Event): string {
    const number = event['index']
    const block = asObject(event['content_block'])
    const kind = `${block?.['type']}`
    const ending = this.#end()
    const shownAs = this.#count++
    if (number !== shownAs) this.#isMended = true
    this.#numbers.set(number, shownAs)
    if (kind === 'text' || kind.includes('thinking')) this.#open = { number, shownAs, kind }
    // SDKs read both members without asking.
    const lacking =
      kind === 'thinking' && typeof block?.['signature'] !== 'string'
        ? unsigned
        : kind === 'tool_use' && !asObject(block?.['input'])
          ? withoutInput
          : undefined
    return number === shownAs && !lacking ? ending + frame : ending + renumbered(frame, data, shownAs, lacking)
  }

  /** @param event of a stream that concerns this */
  delta(frame: RawFrame, data: string, event: Event): string {
    const number = event['index']
    const known = this.#numbers.get(number)
    if (typeof known === 'number') return known === number ? frame : renumbered(frame, data, known)
    const kind = known?.endedKind
    const delta = asObject(event['delta'])
    if (kind === undefined || delta?.['type'] === 'signature_delta') return known ? '' : frame
    const shownAs = this.#count++
    const ending = this.#end()
    this.#numbers.set(number, shownAs)
    this.#open = { number, shownAs, kind }
    const block = kind === 'text' ? { type: kind, text: '' } : { type: kind, thinking: '', signature: '' }
    const start = { type: 'content_block_start', index: shownAs, content_block: block }
    return ending + named(start) + renumbered(frame, data, shownAs)
  }

  stop(frame: RawFrame, data: string, event: Event): string {
    const number = event['index']
    const known = this.#numbers.get(number)
    this.#numbers.delete(number)
    if (this.#open?.number === number) this.#open = undefined
    if (known === undefined) return this.#isMended ? '' : frame
    if (typeof known !== 'number') return ''
    return known === number ? frame : renumbered(frame, data, known)
  }

  /** Ends the text or thinking that is open. */
  #end(): string {
    const open = this.#open
    if (open === undefined) return ''
    this.#open = undefined
    this.#isMended = true
    this.#numbers.set(open.number, { endedKind: open.kind })
    return named({ type: 'content_block_stop', index: open.shownAs })
  }
}

const unsigned = new Map([['signature', '""']])
const withoutInput = new Map([['input', '{}']])

/** @param lacking members of the block that are added */
function renumbered(frame: RawFrame, data: string, shownAs: number, lacking?: ReadonlyMap<string, string>): string {
  const patch = new JsonPatch(Buffer.from(data, 'latin1'))
  patch.set([], new Map([['index', `${shownAs}`]]))
  if (lacking) patch.set(['content_block'], lacking)
  return withData(frame, patch.result().toString('latin1'))
}

function named(event: { type: string; index: number; content_block?: object }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
