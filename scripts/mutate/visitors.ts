import type { Mutant } from './operators.ts'
import type { Visits } from './probe.ts'

/** A test, identified by its file and title, and the mutants that it runs. */
export type Test = { file: string; title: string; ms: number; visits: Set<number> }

/** Limits for trying a single mutant: the most tests, the most files, and the longest time. */
const testsMax = 30
const filesMax = 4
const aloneMs = 8_000

/** Records which tests run which mutants. All visits must be added before anything is asked. */
export function createVisitors(mutants: readonly Mutant[]) {
  const wanted = new Set(mutants.map(({ id }) => id))
  const tests: Test[] = []
  /** For each mutant, the files that run it while they are loaded. Any test of such a file may depend on the mutant. */
  const loaders = new Map<number, Set<string>>()
  let byMutant: Map<number, Test[]> | undefined

  return { add, near, isLoaded, filesOf, comesBy, testsOf }

  function add(file: string, visits: readonly Visits[]): void {
    for (const { test, ms, mutants: visited } of visits) {
      const ids = visited.filter((id) => wanted.has(id))
      if (test !== undefined) tests.push({ file, title: test, ms, visits: new Set(ids) })
      else for (const id of ids) loaders.set(id, (loaders.get(id) ?? new Set()).add(file))
    }
  }

  /** Returns the tests that run few other mutants, because these tests were written for this code. */
  function near(mutant: Mutant): Test[] {
    const nearest: Test[] = []
    const files = new Set<string>()
    let ms = 0
    for (const test of ranked(mutant)) {
      if (nearest.length >= testsMax || (nearest.length > 0 && ms + test.ms > aloneMs)) break
      if (!files.has(test.file) && files.size >= filesMax) continue
      files.add(test.file)
      nearest.push(test)
      ms += test.ms
    }
    return nearest
  }

  function ranked(mutant: Mutant): Test[] {
    const own = indexed().get(mutant.id)
    if (own) return own
    // For code that runs when a file is loaded, the tests that use most of its file come first.
    const beside = new Set(mutants.filter(({ file }) => file === mutant.file).map(({ id }) => id))
    const files = loaders.get(mutant.id)
    const share = (test: Test) => test.visits.intersection(beside).size / test.visits.size
    return tests
      .filter((test) => files?.has(test.file) && !test.visits.isDisjointFrom(beside))
      .sort((one, other) => share(other) - share(one))
  }

  function indexed(): Map<number, Test[]> {
    if (byMutant) return byMutant
    byMutant = new Map()
    for (const test of tests.toSorted((one, other) => one.visits.size - other.visits.size)) {
      for (const id of test.visits) {
        const list = byMutant.get(id)
        if (list) list.push(test)
        else byMutant.set(id, [test])
      }
    }
    return byMutant
  }

  /** Whether a file runs the mutant while it is loaded. */
  function isLoaded(id: number): boolean {
    return loaders.has(id)
  }

  function filesOf(group: readonly Mutant[]): Set<string> {
    const files = new Set(group.flatMap(({ id }) => (indexed().get(id) ?? []).map(({ file }) => file)))
    for (const { id } of group) for (const file of loaders.get(id) ?? []) files.add(file)
    return files
  }

  function comesBy(file: string, id: number): boolean {
    return (
      loaders.get(id)?.has(file) === true ||
      indexed()
        .get(id)
        ?.some((test) => test.file === file) === true
    )
  }

  /** The tests of a file that run one of the mutants; all of them if one runs while the file is loaded. */
  function testsOf(file: string, ids: readonly number[]): Test[] {
    const isWhole = ids.some((id) => loaders.get(id)?.has(file))
    return tests.filter((test) => test.file === file && (isWhole || ids.some((id) => test.visits.has(id))))
  }
}
