import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent, MediaKind, ShownEvent } from '../answer.ts'
import { mintId } from '../ids.ts'
import { cutAtStops } from './stops.ts'
import { splitThinkTags, type ThinkTags } from './think-tags.ts'
import { requireWholeCalls } from './whole-calls.ts'

export type FilterOptions = {
  /** The model's profile. The filters use only its think tags. */
  profile: { thinkTags?: ThinkTags }
  showsReasoning: boolean
  /**
   * Whether the client asked for seals, which are proofs of reasoning (ruling T7). Then a block with only a seal is
   * shown too.
   */
  wantsSealed?: boolean
  /** All requested stop sequences, and the subset that the upstream does not enforce (R-STOP). */
  stops: readonly string[]
  localStops: readonly string[]
  names: ReadonlyMap<string, { name: string; namespace?: string }>
  requestId: string
  /** The prefix of call ids on the client's wire. */
  callIdPrefix: string
  /** Whether an incomplete call fails the answer (ruling Y5). */
  wantsWholeCalls?: boolean
}

/**
 * Combines all filters between a decoder and an encoder. Laws I1–I10 hold after the filters too. A stop sequence that
 * the gateway enforces ends the answer before the upstream does, and no events follow.
 */
export function composeFilters(options: FilterOptions): Step<AnswerEvent, ShownEvent> {
  const { profile, stops, localStops } = options
  const steps: Step<AnswerEvent, AnswerEvent>[] = []
  if (profile.thinkTags) steps.push(splitThinkTags(profile.thinkTags))
  steps.push(cutAtStops(stops, localStops))
  steps.push(gateReasoning(options.showsReasoning, options.wantsSealed ?? false))
  if (options.wantsWholeCalls) steps.push(requireWholeCalls())
  steps.push(restoreCalls(options.names, options.callIdPrefix, options.requestId))
  // The last step removes all media events.
  return chain(steps) as Step<AnswerEvent, ShownEvent>
}

function chain(steps: Step<AnswerEvent, AnswerEvent>[]): Step<AnswerEvent, AnswerEvent> {
  return { push, end: () => [] }

  function push(event: AnswerEvent): Iterable<AnswerEvent> {
    let events: AnswerEvent[] = [event]
    for (const step of steps) {
      // Fast path: usually one event goes in and one comes out.
      if (events.length === 1) events = step.push(events[0]!) as AnswerEvent[]
      else events = events.flatMap((one) => [...step.push(one)])
    }
    return events
  }
}

/**
 * Restores the client's tool names (R-NAME, R-GROUP) and sets our call ids (R-ID). A name that the model invented
 * stays. Media become a sentence at the end (ruling Y9); stop sequences are not searched for in that sentence.
 */
function restoreCalls(
  names: ReadonlyMap<string, { name: string; namespace?: string }>,
  callIdPrefix: string,
  requestId: string,
): Step<AnswerEvent, AnswerEvent> {
  const media = new LeftOutMedia()
  let count = 0
  return { push, end: () => [] }

  function push(event: AnswerEvent): AnswerEvent[] {
    switch (event.type) {
      case 'block_start':
        count++
        return [restore(event)]
      case 'media':
        media.note(event)
        return []
      case 'finish':
        return [...media.block(count), event]
      default:
        return [event]
    }
  }

  function restore(event: AnswerEvent & { type: 'block_start' }): AnswerEvent {
    const { index, block } = event
    if (block.kind !== 'tool_call') return event
    const known = names.get(block.name) ?? { name: block.name }
    return { ...event, block: { kind: 'tool_call', callId: mintId(callIdPrefix, requestId, index), ...known } }
  }
}

/**
 * Shows reasoning that has text, if the client may see reasoning (spec 2.2, 2.7). A block with only a seal is shown if
 * the client also asked for seals (ruling T7). The shown blocks are numbered anew, in the order in which they appear.
 */
function gateReasoning(shows: boolean, wantsSealed: boolean): Step<AnswerEvent, AnswerEvent> {
  let count = 0
  /**
   * The new number of each block, by its old number. Undefined for a reasoning block that has no visible content yet.
   */
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

/** Collects the media of an answer. The client receives one sentence instead of the media (ruling Y9). */
class LeftOutMedia {
  /** The sources of the media seen, by kind. Some servers send the same source twice. */
  readonly #sources = new Map<MediaKind, Set<string>>()

  /** The kinds of media whose transcript was received. */
  readonly #told = new Set<MediaKind>()

  note({ media, source }: AnswerEvent & { type: 'media' }): void {
    const known = this.#sources.get(media) ?? new Set()
    if (source === undefined) this.#told.add(media)
    else if (known.size < mediaMax) this.#sources.set(media, known.add(source))
  }

  /** Returns a text block that names the media that were left out. @param index the number of the next block */
  block(index: number): AnswerEvent[] {
    const leftOut = [...this.#sources].filter(([kind]) => !this.#told.has(kind))
    if (leftOut.length === 0) return []
    const kinds = leftOut.map(([kind, { size }]) => wordsOf[kind](size))
    const text = `[Left out of this answer, because it cannot be sent over this API: ${kinds.join(', ')}.]`
    return [
      { type: 'block_start', index, block: { kind: 'text' } },
      { type: 'block_delta', index, text },
      { type: 'block_stop', index, cut: false },
    ]
  }
}

const mediaMax = 1_000

const wordsOf: Record<MediaKind, (count: number) => string> = {
  image: (count) => (count === 1 ? 'an image' : `${count} images`),
  // Audio and video are sent in pieces, so they are not counted.
  audio: () => 'audio',
  video: () => 'video',
  file: (count) => (count === 1 ? 'a file' : `${count} files`),
}
