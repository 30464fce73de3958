import type { Mutant } from './operators.ts'
import type { Visits } from './probe.ts'
import type { Outcome, Place, Trial } from './run.ts'

/** `unclear`: the tests closest to it pass; whether the others do is seen for several at once. */
export type Verdict = { is: 'caught' | 'late' | 'survived' | 'unclear'; why: string }

export type JudgeParts = {
  place: Place
  mutants: readonly Mutant[]
  tryMutants: (place: Place, trial: Trial) => Promise<Outcome>
}

/** A test, told apart by its file and title, and the mutants it comes by. */
type Test = { file: string; title: string; ms: number; visits: Set<number> }

/** A mutant alone is tried with so many tests at most, of so many files, for so long. */
const testsMax = 30
const filesMax = 4
const aloneMs = 8_000

/** So many that nobody noticed share a run: what is right to survive is most of them. */
const groupMax = 24

/** Decides about mutants. A test that fails with a mutant on counts only if the same test passes without. */
export function createJudge({ place, mutants, tryMutants }: JudgeParts) {
  const wanted = new Set(mutants.map(({ id }) => id))
  const tests: Test[] = []
  /** By mutant, the files whose loading alone comes by it: then any of their tests may be touched. */
  const loaders = new Map<number, Set<string>>()
  const sound = new Map<string, Promise<boolean>>()
  let byMutant: Map<number, Test[]> | undefined

  return { addVisits, tryAlone, groupsOf, tryTogether }

  function addVisits(file: string, visits: readonly Visits[]): void {
    for (const { test, ms, mutants: visited } of visits) {
      const ids = visited.filter((id) => wanted.has(id))
      if (test !== undefined) tests.push({ file, title: test, ms, visits: new Set(ids) })
      else for (const id of ids) loaders.set(id, (loaders.get(id) ?? new Set()).add(file))
    }
  }

  /** Tries the tests that come by few other mutants: they were written for this place. */
  async function tryAlone(mutant: Mutant): Promise<Verdict> {
    const near = nearTests(mutant)
    if (near.length === 0 && !loaders.has(mutant.id)) return { is: 'survived', why: 'no test comes by' }
    for (const [file, of] of Map.groupBy(near, (test) => test.file)) {
      const verdict = await tryOne(file, of, mutant)
      if (verdict) return verdict
    }
    return { is: 'unclear', why: 'its nearest tests pass' }
  }

  function nearTests(mutant: Mutant): Test[] {
    const near: Test[] = []
    const files = new Set<string>()
    let ms = 0
    for (const test of rankedTests(mutant)) {
      if (near.length >= testsMax || (near.length > 0 && ms + test.ms > aloneMs)) break
      if (!files.has(test.file) && files.size >= filesMax) continue
      files.add(test.file)
      near.push(test)
      ms += test.ms
    }
    return near
  }

  function rankedTests(mutant: Mutant): Test[] {
    byMutant ??= indexTests()
    const own = byMutant.get(mutant.id)
    if (own) return own
    // Code that runs when a file is loaded: those who use most of its file come first.
    const beside = new Set(mutants.filter(({ file }) => file === mutant.file).map(({ id }) => id))
    const files = loaders.get(mutant.id)
    const share = (test: Test) => test.visits.intersection(beside).size / test.visits.size
    return tests
      .filter((test) => files?.has(test.file) && !test.visits.isDisjointFrom(beside))
      .sort((one, other) => share(other) - share(one))
  }

  function indexTests(): Map<number, Test[]> {
    const index = new Map<number, Test[]>()
    for (const test of tests.toSorted((one, other) => one.visits.size - other.visits.size)) {
      for (const id of test.visits) {
        const list = index.get(id)
        if (list) list.push(test)
        else index.set(id, [test])
      }
    }
    return index
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
    byMutant ??= indexTests()
    const verdicts = new Map<number, Verdict>()
    const files = new Set(group.flatMap(({ id }) => [...(byMutant!.get(id) ?? []).map(({ file }) => file)]))
    for (const { id } of group) for (const file of loaders.get(id) ?? []) files.add(file)
    for (const file of files) {
      const left = group.filter(({ id }) => !verdicts.has(id) && comesBy(file, id))
      for (const [id, verdict] of await takeApart(file, left)) verdicts.set(id, verdict)
    }
    for (const { id } of group) if (!verdicts.has(id)) verdicts.set(id, { is: 'survived', why: 'every test passes' })
    return verdicts
  }

  async function takeApart(file: string, left: readonly Mutant[]): Promise<Map<number, Verdict>> {
    if (left.length === 0) return new Map()
    const ids = left.map(({ id }) => id)
    const isLoaded = ids.some((id) => loaders.get(id)?.has(file))
    const of = tests.filter((test) => test.file === file && (isLoaded || ids.some((id) => test.visits.has(id))))
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

  function comesBy(file: string, id: number): boolean {
    return loaders.get(id)?.has(file) === true || byMutant!.get(id)?.some((test) => test.file === file) === true
  }
}

/** Generous, for machines that have other work. */
function limitOf(of: readonly Test[]): number {
  return 20_000 + 6 * of.reduce((sum, { ms }) => sum + ms, 0)
}
