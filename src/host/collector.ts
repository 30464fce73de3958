import { setFlagsFromString } from 'node:v8'

/** So many ms are never: the most that the flags take. */
const never = 2 ** 31 - 1

/** Flags of V8 that it reads when it needs them. Every Node which runs us knows them, but for those that say since which V8 there are. */
const flags: { name: string; value: number; sinceV8?: number }[] = [
  /**
   * How much the heap may grow after a collection of the whole heap, in percent of what that collection left. By default the
   * engine allows a fifth, which is a collection every 25,000 small requests here. While its threads mark the heap, requests
   * that wait for that core take five times as long (docs/decisions/0060-room-for-the-heap.md).
   */
  { name: 'heap-growing-percent', value: 200 },
  /**
   * The engine's own tidying, which these two flags turn off. It would run in any pause of eight seconds, and a collection
   * while nothing is under way discards compiled code. It would also run 100 s after the last collection, under any load, which
   * it stops for 40 to 55 ms (docs/decisions/0061-code-stays-warm.md). `tidyWhenIdle` decides when a collection is worth that.
   * The second flag came with Node 26; before, its value is a constant.
   */
  { name: 'gc-memory-reducer-start-delay-ms', value: never },
  { name: 'memory-reducer-delay-ms', value: never, sinceV8: 14 },
]

/** Lets the engine collect the whole heap seldom, and only where there is work. For the whole process, from its next collection on. */
export function calmCollector(): void {
  const v8 = Number.parseInt(process.versions.v8, 10)
  for (const { name, value, sinceV8 = 0 } of flags) if (v8 >= sinceV8) setFlagsFromString(`--${name}=${value}`)
}
