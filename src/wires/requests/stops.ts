import { readArray, readEach, readString } from './read-value.ts'
import { refuse } from './refusals.ts'

/** The most stop sequences in a request, and the longest sequence in code points (ruling T26). */
const stopsMax = 64
const charactersMax = 1_000

/**
 * Reads the stop sequences of a translated request. The gateway searches every answer for the sequences that the
 * upstream does not accept, so their number and length are limited.
 * @throws GatewayError 400 naming the field, or the sequence that is too long
 */
export function readStops(value: unknown, at: string): string[] {
  // The number is checked first, so that a list of 100,000 is not read (B20).
  if (readArray(value, at).length > stopsMax) refuse(at, `at most ${stopsMax} stop sequences are taken: send fewer.`)
  const stops = readEach(value, at, readString)
  for (const [i, stop] of stops.entries()) checkStop(stop, `${at}[${i}]`)
  return stops
}

/** Checks one stop sequence, and returns it. @throws GatewayError 400 if the sequence is too long */
export function checkStop(stop: string, at: string): string {
  // A code point has one or two UTF-16 units. So code points are counted only if the number of units alone does not
  // decide.
  if (stop.length > 2 * charactersMax || (stop.length > charactersMax && [...stop].length > charactersMax))
    refuse(at, 'a stop sequence may have 1,000 characters: send a shorter one.')
  return stop
}
