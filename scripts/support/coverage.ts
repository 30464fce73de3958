import type { Profiler } from 'node:inspector'

/** Characters of a source file, from the first to before the end. */
export type SourceRange = readonly [start: number, end: number]

/** The code that a test file ran: for each source file, ranges in their order that do not touch each other. */
export type Coverage = ReadonlyMap<string, readonly SourceRange[]>

/** A report that Node writes for each process and thread, if NODE_V8_COVERAGE is set. */
export type CoverageReport = { result: Pick<Profiler.ScriptCoverage, 'url' | 'functions'>[] }

/**
 * Joins reports: code has run if it has run in one of them.
 * @param folder the URL before the paths of source files, with `/` at its end; other files are ignored
 */
export function joinReports(reports: Iterable<CoverageReport>, folder: string): Coverage {
  const ran = new Map<string, Uint8Array>()
  for (const { result } of reports)
    for (const { url, functions } of result) {
      if (!url.startsWith(folder)) continue
      // A block that ran differently from the code around it has a range of its own, which is shorter.
      const ranges = functions
        .flatMap((one) => one.ranges)
        .sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset)
      const size = Math.max(...ranges.map(({ endOffset }) => endOffset))
      const path = url.slice(folder.length)
      const here = new Uint8Array(size)
      for (const { startOffset, endOffset, count } of ranges) here.fill(Number(count > 0), startOffset, endOffset)
      const before = ran.get(path)
      ran.set(path, before === undefined ? here : before.map((value, at) => value | here[at]!))
    }
  return new Map([...ran].map(([path, marks]) => [path, listRanges(marks)]))
}

function listRanges(marks: Uint8Array): SourceRange[] {
  const ranges: SourceRange[] = []
  for (let start = marks.indexOf(1); start >= 0; ) {
    const found = marks.indexOf(0, start)
    const end = found < 0 ? marks.length : found
    ranges.push([start, end])
    start = marks.indexOf(1, end)
  }
  return ranges
}

/** Code that is run by the same test files. */
type Part = { characters: number; tests: string[] }

/** Files of fewer seconds come first, because tests of rules, pages and scripts are among them, which run no `src`. */
const shortSeconds = 1

/**
 * Sorts test files: first all short ones, then the others. At each place comes the file that runs most code for its
 * seconds that no file before it runs. Files that add no code are last, the shortest first.
 * @param secondsOf the cost of each test file, above 0
 * @returns the files with the characters of code that each adds
 */
export function sortByGain(
  coverages: ReadonlyMap<string, Coverage>,
  secondsOf: Readonly<Record<string, number>>,
): [file: string, added: number][] {
  const gains = new Map([...coverages.keys()].map((file) => [file, 0]))
  const partsOf = new Map<string, Part[]>([...coverages.keys()].map((file) => [file, []]))
  for (const part of splitByTests(coverages))
    for (const test of part.tests) {
      partsOf.get(test)!.push(part)
      gains.set(test, gains.get(test)! + part.characters)
    }
  const sorted: [string, number][] = []
  while (gains.size > 0) {
    const worth = (file: string) => gains.get(file)! / secondsOf[file]! || -secondsOf[file]!
    const short = [...gains.keys()].filter((file) => secondsOf[file]! < shortSeconds)
    const best = (short.length > 0 ? short : [...gains.keys()]).reduce((a, b) => (worth(b) > worth(a) ? b : a))
    sorted.push([best, gains.get(best)!])
    gains.delete(best)
    for (const part of partsOf.get(best)!) {
      for (const test of part.tests) if (gains.has(test)) gains.set(test, gains.get(test)! - part.characters)
      part.characters = 0
    }
  }
  return sorted
}

/** Splits all code that ran into parts, each of which the same test files run. */
function splitByTests(coverages: ReadonlyMap<string, Coverage>): Part[] {
  const parts = new Map<string, Part>()
  const paths = new Set([...coverages.values()].flatMap((coverage) => [...coverage.keys()]))
  for (const path of paths) {
    const borders = [...coverages].flatMap(([test, coverage]) =>
      (coverage.get(path) ?? []).flatMap(([start, end]) => [
        { at: start, test, isStart: true },
        { at: end, test, isStart: false },
      ]),
    )
    borders.sort((a, b) => a.at - b.at)
    const running = new Set<string>()
    for (const [index, { at, test, isStart }] of borders.entries()) {
      if (isStart) running.add(test)
      else running.delete(test)
      const characters = (borders[index + 1]?.at ?? at) - at
      if (characters === 0 || running.size === 0) continue
      const tests = [...running].sort()
      const key = tests.join()
      const part = parts.get(key)
      if (part === undefined) parts.set(key, { characters, tests })
      else part.characters += characters
    }
  }
  return [...parts.values()]
}
