import type { Mutant } from './operators.ts'
import type { Outcome, Place, Trial } from './run.ts'
import { createVisitors, type Test } from './visitors.ts'

/** `unclear`: the tests closest to it pass; whether the others do is seen for several at once. */
export type Verdict = { is: 'caught' | 'late' | 'survived' | 'unclear'; why: string }

export type JudgeParts = {
  place: Place
  mutants: readonly Mutant[]
  tryMutants: (place: Place, trial: Trial) => Promise<Outcome>
}

/** So many that nobody noticed share a run: what is right to survive is most of them. */
const groupMax = 24

/** Decides about mutants. A test that fails with a mutant on counts only if the same test passes without. */
export function createJudge({ place, mutants, tryMutants }: JudgeParts) {
  const visitors = createVisitors(mutants)
  const sound = new Map<string, Promise<boolean>>()

  return { addVisits: visitors.add, tryAlone, groupsOf, tryTogether }

  /** Tries the tests that come by few other mutants: they were written for this place. */
  async function tryAlone(mutant: Mutant): Promise<Verdict> {
    const near = visitors.near(mutant)
    if (near.length === 0 && !visitors.isLoaded(mutant.id)) return { is: 'survived', why: 'no test comes by' }
    for (const [file, of] of Map.groupBy(near, (test) => test.file)) {
      const verdict = await tryOne(file, of, mutant)
      if (verdict) return verdict
    }
    return { is: 'unclear', why: 'its nearest tests pass' }
  }

  async function tryOne(file: string, of: readonly Test[], { id }: Mutant): Promise<Verdict | undefined> {
    const titles = of.map(({ title }) => title)
    const outcome = await tryMutants(place, { file, tests: titles, mutants: [id], limitMs: limitOf(of) })
    if (outcome.is === 'late') return { is: 'late', why: file }
    if (outcome.is === 'passed') return undefined
    // Known only in the file's hooks or its end: then the whole choice must pass without.
    const failing = outcome.test === undefined ? of : of.filter(({ title }) => title === outcome.test)
    if (!(await isSound(file, failing.length > 0 ? failing : of))) return undefined
    return { is: 'caught', why: `${file}: ${outcome.test ?? 'at its start or end'}` }
  }

  /** Whether tests pass by themselves when nothing is changed. */
  function isSound(file: string, of: readonly Test[]): Promise<boolean> {
    const titles = of.map(({ title }) => title)
    const key = JSON.stringify([file, ...titles])
    const known = sound.get(key)
    if (known) return known
    // Number -1 is no mutant: the run is like one with a mutant, but nothing is changed.
    const answer = tryMutants(place, { file, tests: titles, mutants: [-1], limitMs: limitOf(of) }).then(({ is }) => {
      // Perhaps the machine was too busy: asked again next time.
      if (is !== 'passed') sound.delete(key)
      return is === 'passed'
    })
    sound.set(key, answer)
    return answer
  }

  function groupsOf(unclear: readonly Mutant[]): Mutant[][] {
    // Neighbours may hide each other, so a group is taken from all over.
    const count = Math.ceil(unclear.length / groupMax)
    return Array.from({ length: count }, (_, at) => unclear.filter((__, i) => i % count === at))
  }

  /** Tries what is unclear with every test that comes by, all at once, and takes those apart that fail. */
  async function tryTogether(group: readonly Mutant[]): Promise<Map<number, Verdict>> {
    const verdicts = new Map<number, Verdict>()
    for (const file of visitors.filesOf(group)) {
      const left = group.filter(({ id }) => !verdicts.has(id) && visitors.comesBy(file, id))
      for (const [id, verdict] of await takeApart(file, left)) verdicts.set(id, verdict)
    }
    for (const { id } of group) if (!verdicts.has(id)) verdicts.set(id, { is: 'survived', why: 'every test passes' })
    return verdicts
  }

  async function takeApart(file: string, left: readonly Mutant[]): Promise<Map<number, Verdict>> {
    if (left.length === 0) return new Map()
    const ids = left.map(({ id }) => id)
    const of = visitors.testsOf(file, ids)
    if (of.length === 0) return new Map()
    if (left.length === 1) {
      const verdict = await tryOne(file, of, left[0]!)
      return new Map(verdict && [[ids[0]!, verdict]])
    }
    const outcome = await tryMutants(place, {
      file,
      tests: of.map(({ title }) => title),
      mutants: ids,
      limitMs: limitOf(of),
    })
    if (outcome.is === 'passed') return new Map()
    const middle = left.length >> 1
    const first = await takeApart(file, left.slice(0, middle))
    return new Map([...first, ...(await takeApart(file, left.slice(middle)))])
  }
}

/** Generous, for machines that have other work. */
function limitOf(of: readonly Test[]): number {
  return 20_000 + 6 * of.reduce((sum, { ms }) => sum + ms, 0)
}
