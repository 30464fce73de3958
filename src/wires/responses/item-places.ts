import type { RawFrame } from '../../bytes/frame-cutter.ts'

const toldPlace = /"output_index"\s*:\s*(\d+)/
const ownerOf = /"item_id"\s*:\s*"([^"\\]*)"/
const idOfItem = /"id"\s*:\s*"([^"\\]*)"/

/** How many items of a stream are remembered. */
const itemsMax = 1_024

/**
 * Gives each item of a stream its own `output_index` (ruling Y3). Some gateways announce a call with the index of the
 * message before it. SDKs throw then, and agents do not run the call.
 */
export class ItemPlaces {
  /** The id of the newest item at each index of the upstream, and the index that the client sees. */
  readonly #newest = new Map<string, { id: string | undefined; shown: number }>()
  readonly #byId = new Map<string, number>()
  #next = 0
  #isMoved = false

  /** Returns the event, with another index if an earlier item has this one. */
  place(name: string, frame: RawFrame): RawFrame {
    const isStart = name === 'response.output_item.added'
    if (!isStart && !this.#isMoved) return frame
    const told = toldPlace.exec(frame)?.[1]
    if (told === undefined) return frame
    const id = (name.startsWith('response.output_item.') ? idOfItem : ownerOf).exec(frame)?.[1] || undefined
    const shown = isStart ? this.#begin(told, id) : (this.#byId.get(id ?? '') ?? this.#newest.get(told)?.shown)
    if (shown === undefined || shown === Number(told)) return frame
    return frame.replace(toldPlace, `"output_index":${shown}`)
  }

  #begin(told: string, id: string | undefined): number {
    const before = this.#newest.get(told)
    const isTaken = id !== undefined && before?.id !== undefined && before.id !== id
    if (this.#newest.size >= itemsMax || this.#byId.size >= itemsMax) return before?.shown ?? Number(told)
    const shown = isTaken ? this.#next : (before?.shown ?? Math.max(Number(told), this.#isMoved ? this.#next : 0))
    this.#isMoved ||= shown !== Number(told)
    this.#next = Math.max(this.#next, shown + 1)
    this.#newest.set(told, { id: id ?? before?.id, shown })
    if (id !== undefined) this.#byId.set(id, shown)
    return shown
  }
}
