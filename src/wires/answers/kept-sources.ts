import type { JsonObject } from '../../bytes/json.ts'
import { type KeptJson, parseKeeping } from '../../bytes/json.ts'

/**
 * The source texts of one member of several objects in an answer: parsing would lose digits (ruling T16). The text is read once,
 * and only if one is asked for: an answer may call a thousand times.
 * @param text what was read as JSON already
 * @param objectsIn the objects, whose places are asked for
 * @returns undefined where there is no object
 */
export function keptSources(
  text: string,
  key: string,
  objectsIn: (root: JsonObject) => readonly (JsonObject | undefined)[],
): (place: number) => string | undefined {
  let kept: KeptJson | undefined
  let objects: readonly (JsonObject | undefined)[] = []
  return (place) => {
    if (kept === undefined) {
      kept = parseKeeping(text, [key])
      objects = objectsIn(kept.value as JsonObject)
    }
    const object = objects[place]
    return object && kept.raw(object[key]).source
  }
}
