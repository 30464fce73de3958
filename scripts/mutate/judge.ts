import type { Mutant } from './operators.ts'
import type { Outcome, Place, Trial } from './run.ts'
import { createVisitors, type Test } from './visitors.ts'

/** `unclear`: the tests closest to the mutant pass. The other tests are run later, for several mutants at once. */
export type Verdict = { is: 'caught' | 'late' | 'survived' | 'unclear'; why: string }

export type JudgeParts = {
  place: Place
  mutants: readonly Mutant[]
  tryMutants: (place: Place, trial: Trial) => Promise<Outcome>
}

/** The most unclear mutants to try together. A run without a failure clears all of them, and most runs have none. */
const groupMax = 24

/** Judges mutants. A test that fails with a mutant counts only if it passes without one. */
export function createJudge({ place, mutants, tryMutants }: JudgeParts) {
  const visitors = createVisitors(mutants)
  const sound = new Map<string, Promise<boolean>>()

  return { addVisits: visitors.add, tryAlone, groupsOf, tryTogether }

  /** Tries the tests that run few other mutants, because these tests were written for this code. */
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
    // If a file fails in a hook or at its end, no test is named. All chosen tests must then pass without the mutant.
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
    // No mutant has the number -1, so the run is like one with a mutant, but changes nothing.
    const answer = tryMutants(place, { file, tests: titles, mutants: [-1], limitMs: limitOf(of) }).then(({ is }) => {
      // The machine may have been too busy, so the next call tries again.
      if (is !== 'passed') sound.delete(key)
      return is === 'passed'
    })
    sound.set(key, answer)
    return answer
  }

  function groupsOf(unclear: readonly Mutant[]): Mutant[][] {
    // Neighbouring mutants may hide each other, so a group is chosen from all places.
    const count = Math.ceil(unclear.length / groupMax)
    return Array.from({ length: count }, (_, at) => unclear.filter((__, i) => i % count === at))
  }

  /** Tries unclear mutants together with every test that runs one of them. If a test fails, they are tried apart. */
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

/** A generous limit, for machines that have other work. */
function limitOf(of: readonly Test[]): number {
  return 20_000 + 6 * of.reduce((sum, { ms }) => sum + ms, 0)
}
