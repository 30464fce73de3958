/** The largest number of similar ids that an error names (ruling R17). */
const nearMax = 3
const distanceMax = 2
/** The longest id that is compared, in characters. No person would type a longer id. */
const idCharactersMax = 100

/**
 * Finds the ids of a list that a client may have meant by an unknown id (ruling R17), the nearest id first. Ids that
 * differ in case, punctuation, a date or the vendor's prefix come before those that differ by one or two characters.
 */
export function findNearIds(asked: string, ids: Iterable<string>): string[] {
  if (asked.length > idCharactersMax) return []
  const essence = essenceOf(asked)
  const near: { id: string; distance: number }[] = []
  for (const id of ids) {
    const distance = essenceOf(id) === essence ? 0 : distanceOf(asked.toLowerCase(), id.toLowerCase())
    if (distance <= distanceMax) near.push({ id, distance })
  }
  return near
    .sort((a, b) => a.distance - b.distance)
    .slice(0, nearMax)
    .map(({ id }) => id)
}

/** Returns the end of a sentence that asks whether one of the similar ids was meant; undefined if no id is similar. */
export function didYouMean(asked: string, ids: Iterable<string>): string | undefined {
  const near = findNearIds(asked, ids)
  return near.length > 0 ? `did you mean ${near.join(' or ')}?` : undefined
}

const listedMax = 5

/** Writes the first five ids of a list, and how many more there are. */
export function writeFirst(ids: readonly string[]): string {
  const more = ids.length - listedMax
  return ids.slice(0, listedMax).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** Returns an id without the parts that people omit, add or spell differently. */
function essenceOf(id: string): string {
  const name = id.slice(id.lastIndexOf('/') + 1).toLowerCase()
  const undated = name.replace(/[-@:]?(?:20\d{6}|20\d\d-\d\d-\d\d|latest)$/, '')
  return undated.replace(/[^\p{L}\p{N}]/gu, '')
}

/** Returns how many characters to insert, delete or change to turn `a` into `b`, at most `distanceMax + 1`. */
function distanceOf(a: string, b: string): number {
  const far = distanceMax + 1
  if (Math.abs(a.length - b.length) > distanceMax) return far
  let above = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= b.length; j++) {
      const change = above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const steps = Math.min(change, above[j]! + 1, row[j - 1]! + 1)
      row.push(steps)
      least = Math.min(least, steps)
    }
    if (least > distanceMax) return far
    above = row
  }
  return Math.min(above[b.length]!, far)
}
