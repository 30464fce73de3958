import { areas, type Level, levels, wires } from './case.ts'
import type { VerdictName } from './verdict.ts'

/** The verdict on a case on a pair. */
export type Result = {
  case: string
  area: string
  level: Level
  pair: string
  verdict: VerdictName
  note?: string
  differences: string[]
  ms: number
}

/** A report, as it is kept. @property day when it ran, UTC */
export type Report = {
  suite: string
  gateway: { name: string; version: string; homepage?: string }
  day: string
  node: string
  switchedOn: readonly string[]
  seconds: number
  results: Result[]
}

const verdictWords: { [name in VerdictName]: string } = {
  pass: 'pass',
  fail: 'fail',
  refused: 'refused honestly',
  unsupported: 'unsupported',
  deviation: 'declared deviation',
  flaky: 'flaky',
}

export const verdictNames = Object.keys(verdictWords) as readonly VerdictName[]

/** The verdict on a case over its pairs: the worst, and unsupported only if it is so on all. */
export function overall(results: readonly Result[]): VerdictName {
  const order: VerdictName[] = ['fail', 'flaky', 'deviation', 'refused', 'pass']
  return order.find((name) => results.some(({ verdict }) => verdict === name)) ?? 'unsupported'
}

/** Counts the cases of a level by their verdict over all pairs. */
export function countCases(results: readonly Result[], level: Level): { [name in VerdictName]: number } {
  const counts = { pass: 0, fail: 0, refused: 0, unsupported: 0, deviation: 0, flaky: 0 }
  const ofLevel = results.filter((result) => result.level === level)
  for (const ofCase of Map.groupBy(ofLevel, (result) => result.case).values()) counts[overall(ofCase)]++
  return counts
}

/** Writes a report as a page. It has tables and no single number. */
export function writeMarkdown({ suite, gateway, day, node, switchedOn, seconds, results }: Report): string {
  let page = `# ${gateway.name} ${gateway.version}\n\n`
  page += `bothsides ${suite} on ${day}, Node ${node}, ${seconds} s.\n`
  if (switchedOn.length > 0) page += `\nSwitched on:\n\n${switchedOn.map((line) => `- ${line}\n`).join('')}`
  page += `\n## Cases\n\nA case counts once, by its worst pair.\n\n`
  page += table(
    ['Level', ...Object.values(verdictWords)],
    levels.map((level) => [level, ...Object.values(countCases(results, level)).map(String)]),
  )
  for (const level of levels) {
    const ofLevel = results.filter((result) => result.level === level)
    if (ofLevel.length === 0) continue
    page += `\n## ${level}: pair × area\n\nPassed of those that ran; d: declared deviations, r: refused honestly. A dash: nothing ran.\n\n`
    page += table(
      ['Pair', ...areas],
      pairNames
        .map((pair) => [pair, ...areas.map((area) => cell(ofLevel.filter((r) => r.pair === pair && r.area === area)))])
        .filter(([, ...cells]) => cells.some((text) => text !== '–')),
    )
  }
  const shown: VerdictName[] = ['fail', 'flaky', 'deviation', 'refused', 'unsupported']
  for (const verdict of shown) {
    const found = results.filter((result) => result.verdict === verdict)
    if (found.length === 0) continue
    const title = verdictWords[verdict]
    page += `\n## ${title[0]!.toUpperCase()}${title.slice(1)}\n\n`
    for (const [id, ofCase] of Map.groupBy(found, (result) => result.case)) {
      const { level, note, differences } = ofCase[0]!
      const why = note ?? differences[0] ?? ''
      page += `- **${id}** (${level}; ${ofCase.map(({ pair }) => pair).join(', ')}): ${why.replaceAll('\n', ' ')}\n`
    }
  }
  return page
}

const pairNames = wires.flatMap((client) => wires.map((model) => `${client}>${model}`))

function cell(results: readonly Result[]): string {
  const count = (name: VerdictName) => results.filter(({ verdict }) => verdict === name).length
  const ran = results.length - count('unsupported')
  if (ran === 0) return '–'
  const others = [
    count('deviation') ? ` ${count('deviation')}d` : '',
    count('refused') ? ` ${count('refused')}r` : '',
  ].join('')
  return `${count('pass')}/${ran}${others}`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('')
}

/** Writes a report as JUnit's XML. Cases that are unsupported, refused or declared deviations count as skipped. */
export function writeJunit({ gateway, results }: Report): string {
  const suites = [...Map.groupBy(results, ({ area }) => area)].map(([area, ofArea]) => {
    const count = (names: readonly VerdictName[]) => ofArea.filter(({ verdict }) => names.includes(verdict)).length
    const cases = ofArea.map((result) => {
      const head = `<testcase classname="${escapeXml(result.case)}" name="${escapeXml(result.pair)}" time="${result.ms / 1_000}"`
      const text = escapeXml([result.note, ...result.differences].filter(Boolean).join('\n'))
      if (result.verdict === 'pass') return `${head}/>`
      const name = failing.includes(result.verdict) ? 'failure' : 'skipped'
      return `${head}><${name} message="${verdictWords[result.verdict]}">${text}</${name}></testcase>`
    })
    const seconds = ofArea.reduce((sum, { ms }) => sum + ms, 0) / 1_000
    const counts = `tests="${ofArea.length}" failures="${count(failing)}" errors="0" skipped="${count(skipped)}" time="${seconds}"`
    return `<testsuite name="${area}" ${counts}>\n${cases.join('\n')}\n</testsuite>`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="${escapeXml(gateway.name)}">\n${suites.join('\n')}\n</testsuites>\n`
}

const failing: readonly VerdictName[] = ['fail', 'flaky']
const skipped: readonly VerdictName[] = ['unsupported', 'deviation', 'refused']

/** Escapes text for XML, and leaves out the characters that XML 1.0 does not have. */
function escapeXml(text: string): string {
  return text.replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd]/g, '').replace(/[<>&"]/g, (one) => `&#${one.codePointAt(0)};`)
}

const colours = { good: '#2e7d32', some: '#9a6700', bad: '#b3261e', none: '#57606a' }

/** Draws the badge of a level: its cases by verdict. */
export function drawBadge({ suite, results }: Report, level: Level): string {
  const counts = countCases(results, level)
  const words = (['pass', 'fail', 'flaky', 'deviation', 'refused', 'unsupported'] as const)
    .filter((name) => counts[name] > 0)
    .map((name) => `${counts[name]} ${name === 'deviation' ? 'declared' : name}`)
    .join(' · ')
  const text = words || 'not run'
  const isBad = counts.fail + counts.flaky > 0
  const colour = !words ? colours.none : isBad ? colours.bad : counts.deviation > 0 ? colours.some : colours.good
  const [label, left] = [`${level} ${suite}`, 14 + 6.6 * `${level} ${suite}`.length]
  const width = Math.ceil(left + 14 + 6.6 * text.length)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="20" role="img" aria-label="${label}: ${text}">
<title>bothsides ${label}: ${text}</title>
<rect width="${width}" height="20" rx="3" fill="${colour}"/><rect width="${left}" height="20" rx="3" fill="#24292f"/>
<g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11"><text x="7" y="14">${label}</text><text x="${left + 7}" y="14">${text}</text></g>
</svg>
`
}

/** @property pair without it: all pairs of the case */
export type ExpectedFailure = { case: string; pair?: string; why: string }

/** Compares results with a baseline. @returns the failures that it does not have, and its entries that did not fail */
export function compareBaseline(
  results: readonly Result[],
  baseline: readonly ExpectedFailure[],
): { unexpected: Result[]; stale: ExpectedFailure[] } {
  const covers = (entry: ExpectedFailure, result: Result) =>
    entry.case === result.case && (entry.pair === undefined || entry.pair === result.pair)
  const failures = results.filter(({ verdict }) => failing.includes(verdict))
  const ran = new Set(results.map((result) => result.case))
  return {
    unexpected: failures.filter((result) => !baseline.some((entry) => covers(entry, result))),
    // With --only, an entry of a case that did not run says nothing.
    stale: baseline.filter((entry) => ran.has(entry.case) && !failures.some((result) => covers(entry, result))),
  }
}
