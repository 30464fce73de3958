import { setFlagsFromString } from 'node:v8'

/** How much may be added to what the last collection of the whole heap has left, in percent of that. */
const percent = 200

/**
 * Lets the heap triple before all of it is collected. Left to itself the engine does so behind a fifth more, every 25,000 small
 * requests here, and while its threads mark the heap whoever waits for that core waits five times as long
 * (docs/decisions/0060-room-for-the-heap.md). For the whole process, from its next collection on.
 */
export function giveHeapRoom(): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`)
}
