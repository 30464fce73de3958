import { readArray, readEach, readString } from './read-value.ts'
import { refuse } from './refusals.ts'

/** How many stop sequences a request may have, and how long each may be, in code points (ruling T26). */
const stopsMax = 64
const charactersMax = 1_000

/**
 * The stop sequences of a request that is translated. The gateway looks in every answer for those that an upstream does
 * not take, so they are bounded.
 * @throws GatewayError 400 naming the field, or the sequence that is too long.
 */
export function readStops(value: unknown, at: string): string[] {
  // Before a hundred thousand of them are looked at (B20).
  if (readArray(value, at).length > stopsMax) refuse(at, `at most ${stopsMax} stop sequences are taken: send fewer.`)
  const stops = readEach(value, at, readString)
  for (const [i, stop] of stops.entries()) checkStop(stop, `${at}[${i}]`)
  return stops
}

/** @throws GatewayError 400 if it is too long. */
export function checkStop(stop: string, at: string): string {
  // Code points are never more than UTF-16 units, and at least half as many: only in between they are counted.
  if (stop.length > 2 * charactersMax || (stop.length > charactersMax && [...stop].length > charactersMax))
    refuse(at, 'a stop sequence may have 1,000 characters: send a shorter one.')
  return stop
}
