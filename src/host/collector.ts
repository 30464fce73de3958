import { setFlagsFromString } from 'node:v8'

/** So many ms are never: the most that the flags take. */
const never = 2 ** 31 - 1

/** Flags of V8 that it reads when it needs them. Every Node which runs us knows them, but for those that say since which V8 there are. */
const flags: { name: string; value: number; sinceV8?: number }[] = [
  /**
   * How much may be added to what the last collection of the whole heap has left, in percent of that. Left to itself the engine takes a
   * fifth, so that a collection comes every 25,000 small requests here, and while its threads mark the heap whoever waits for that
   * core waits five times as long (docs/decisions/0060-room-for-the-heap.md).
   */
  { name: 'heap-growing-percent', value: 200 },
  /**
   * The engine's own tidying. It would come in any pause of eight seconds, and a collection while nothing is under way takes compiled
   * code with it; and, 100 s behind the last collection, under any load, which it stops for 40 to 55 ms
   * (docs/decisions/0061-code-stays-warm.md): `tidyWhenIdle` decides when that is worth it. The second is Node 26's; in those before,
   * it is a constant.
   */
  { name: 'gc-memory-reducer-start-delay-ms', value: never },
  { name: 'memory-reducer-delay-ms', value: never, sinceV8: 14 },
]

/** Lets the engine collect the whole heap seldom, and only where there is work. For the whole process, from its next collection on. */
export function calmCollector(): void {
  const v8 = Number.parseInt(process.versions.v8, 10)
  for (const { name, value, sinceV8 = 0 } of flags) if (v8 >= sinceV8) setFlagsFromString(`--${name}=${value}`)
}
