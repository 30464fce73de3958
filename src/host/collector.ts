import { setFlagsFromString } from 'node:v8'

/** The largest value that the flags take, in ms, which means never. */
const never = 2 ** 31 - 1

/** Flags that V8 reads when it needs them. All supported versions of Node know them, except those with `sinceV8`. */
const flags: { name: string; value: number; sinceV8?: number }[] = [
  /**
   * The growth of the heap that triggers a full collection, in percent of what the last one left. By default V8 allows a
   * fifth, which is a collection every 25,000 small requests here. While its threads mark the heap, requests that need the
   * same core take five times as long (docs/decisions/0060-room-for-the-heap.md).
   */
  { name: 'heap-growing-percent', value: 200 },
  /**
   * These two flags turn off V8's own memory reducer. It would collect in any pause of eight seconds, which discards compiled
   * code. It would also run 100 s after the last collection, even under load, and stop requests for 40 to 55 ms
   * (docs/decisions/0061-code-stays-warm.md). `tidyWhenIdle` decides instead when a collection is worth that. The second flag
   * came with Node 26; before, its value is a constant.
   */
  { name: 'gc-memory-reducer-start-delay-ms', value: never },
  { name: 'memory-reducer-delay-ms', value: never, sinceV8: 14 },
]

/** Makes V8 collect the whole heap less often. It counts for the whole process, from the next collection on. */
export function calmCollector(): void {
  const v8 = Number.parseInt(process.versions.v8, 10)
  for (const { name, value, sinceV8 = 0 } of flags) if (v8 >= sinceV8) setFlagsFromString(`--${name}=${value}`)
}
