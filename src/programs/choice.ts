import type { Candidate } from './figures.ts'
import type { OfferedModel, Program } from './program.ts'

/**
 * Chooses the model for a program if none was named. A model of the program's families comes first, then one that answers on a
 * wire of the program, then the first of the list.
 */
export function chooseModel<M extends Candidate>({ families = [], wires }: Program, list: readonly M[]): M | undefined {
  for (const family of families) {
    const found = findFamily(family, list)
    if (found) return found
  }
  return list.find(({ wire }) => wires.some((own) => own === wire)) ?? list[0]
}

/**
 * Chooses the model for titles and other small work: the program's family for it, else the cheapest whose price is known. The
 * large model is the first of the list. Of two with one price, the large one wins, then one of its wire.
 */
export function chooseSmall<M extends Candidate>({ small }: Program, list: readonly M[]): M {
  const large = list[0]!
  if (small === undefined) return large
  const family = small.family === undefined ? undefined : findFamily(small.family, list, large.model)
  if (family) return family
  const rank = (one: M) => (one.model === large.model ? 0 : one.wire === large.wire ? 1 : 2)
  const priced = list.filter(({ price }) => price !== undefined)
  return priced.sort((a, b) => a.price! - b.price! || rank(a) - rank(b))[0] ?? large
}

/**
 * Finds the model of a family by its name, which must stand as a word in the id. The chosen model wins if it is of the family.
 * Otherwise the newest does, by the numbers of its id.
 */
export function findFamily<M extends OfferedModel>(family: string, list: readonly M[], chosen?: string): M | undefined {
  const word = new RegExp(String.raw`(?<![a-z\d])${family}(?![a-z])`, 'i')
  const members = list.filter(({ model }) => word.test(model))
  return members.find(({ model }) => model === chosen) ?? members.sort((a, b) => compareVersions(b.model, a.model))[0]
}

function compareVersions(a: string, b: string): number {
  const [left, right] = [versionOf(a), versionOf(b)]
  const place = left.findIndex((number, index) => number !== right[index])
  return place === -1 ? left.length - right.length : left[place]! - (right[place] ?? -1)
}

/** The numbers of an id. Days, such as 20251101, are left out, because they say nothing of another version. */
function versionOf(id: string): number[] {
  return (id.match(/\d+/g) ?? []).map(Number).filter((number) => number < 1_000)
}
