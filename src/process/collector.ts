import { setFlagsFromString } from 'node:v8'

/** Flags of V8 that it reads when it needs them, and that every Node which runs us knows. */
const flags = {
  /**
   * How much may be added to what the last collection of the whole heap has left, in percent of that. Left to itself the engine takes a
   * fifth, so that a collection comes every 25,000 small requests here, and while its threads mark the heap whoever waits for that
   * core waits five times as long (docs/decisions/0060-room-for-the-heap.md).
   */
  'heap-growing-percent': 200,
  /**
   * Never. The engine would tidy up in any pause of eight seconds, and a collection while nothing is under way takes compiled code with
   * it (docs/decisions/0061-code-stays-warm.md): `tidyWhenIdle` decides when that is worth it.
   */
  'gc-memory-reducer-start-delay-ms': 2 ** 31 - 1,
}

/** Lets the engine collect the whole heap seldom, and only where there is work. For the whole process, from its next collection on. */
export function calmCollector(): void {
  for (const [name, value] of Object.entries(flags)) setFlagsFromString(`--${name}=${value}`)
}
