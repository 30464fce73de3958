import { globSync, readFileSync } from 'node:fs'
import { putGenerated } from './support/generated.ts'

// Writes docs/conformance-tests.md, which lists the tests of each rule, from the titles of the tests. `--check` only
// reports whether the page is up to date.

/** The subjects of rules, by letter. */
const titles: Readonly<Record<string, string>> = {
  A: 'Findings of agents, and cases of answers',
  B: 'Findings of attackers',
  E: 'Findings of recorded traffic',
  N: 'Names',
  R: 'Order of checks',
  C: 'Credit',
  P: 'Same wire',
  T: 'Translation',
  U: 'Upstreams and errors',
  X: 'Runtime',
}

/** Matches a row of a table of tests: the id of the case, and its text, which may have a name such as `title`. */
const caseId = String.raw`(?:Q|A|TP|I)\d{1,3}[a-z]?|F-[CUSP]\d{1,2}`
const caseRow = new RegExp(
  String.raw`'(${caseId})',\s*(?:(?:title|says|what):\s*)?(['"\x60])((?:\\.|(?!\2)[^\\\n])*)\2`,
  'g',
)
/** Matches a row with id and text in one literal: 'F-U9 a reset'. */
const caseLiteral = new RegExp(`^(?:${caseId}) .`)
const ruleId = /(?<!-)\b(?:TP|TS|[NRCPTUXQAI])\d{1,3}\b|\b[BE]\d{1,2}\b|\bF-[CUSP]\d{1,2}\b|\bR-[A-Z]{2,}\b/g
const specIds = /\bspec ((?:\d+(?:\.\d+)*(?:, | and )?)+)/g

putGenerated('docs/conformance-tests.md', () => write(collect()))

/** Maps each rule to the tests that name it, each as file and title. */
function collect(): Map<string, Set<string>> {
  const rules = new Map<string, Set<string>>()
  const root = new URL('..', import.meta.url)
  for (const name of globSync(['test/**/*.test.ts', 'test/**/*.cases.ts', 'test/pages/**/*.md'], {
    cwd: root,
  }).sort()) {
    for (const title of titlesOf(name, readFileSync(new URL(name, root), 'utf8'))) {
      for (const rule of rulesOf(title)) {
        const tests = rules.get(rule) ?? new Set()
        rules.set(rule, tests.add(`${title} (\`${name}\`)`))
      }
    }
  }
  return rules
}

function titlesOf(name: string, source: string): string[] {
  if (name.endsWith('.md')) return [...source.matchAll(/^# (.+)$/gm)].slice(0, 1).map(([, title = '']) => title)
  const whole = [...source.matchAll(/\b(?:test|it|describe|suite)\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g)]
  const rows = [...source.matchAll(caseRow)].map(([, id, , says = '']) => `${id} ${tidy(says)}`)
  const literals = [...source.matchAll(/'([^'\n]{2,200})'/g)].map(([, literal = '']) => literal)
  return [
    ...whole.map(([, , title = '']) => tidy(title)),
    ...rows,
    ...literals.filter((literal) => caseLiteral.test(literal)),
  ]
}

/** Makes a title readable: an expression in a template becomes an ellipsis. */
function tidy(title: string): string {
  return title.replace(/\$\{[^}]*\}/g, '…').replaceAll('\\', '')
}

function rulesOf(title: string): Set<string> {
  const rules = new Set(title.match(ruleId))
  for (const [, list = ''] of title.matchAll(specIds)) {
    for (const section of list.match(/\d+(?:\.\d+)*/g) ?? []) rules.add(`spec ${section}`)
  }
  return rules
}

function write(rules: Map<string, Set<string>>): string {
  const missing = builtRulings().filter((rule) => !rules.has(rule))
  const ids = [...rules.keys()].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  const groups = Map.groupBy(ids, (id) => /^(spec|R-|F-[CUSP]|[A-Z]+)/.exec(id)?.[0] ?? '')
  let page =
    '# Rules and their tests\n\nWhich tests pin which rule, made from the titles of the tests by `npm run generate`.\n'
  page += 'Where each number leads is said at the end of `docs/rulings.md`.\n'
  if (missing.length > 0) page += `\nRulings that no test names: ${missing.join(', ')}.\n`
  for (const [group, members] of groups) {
    const title = titles[group]
    page += `\n## ${group}${title ? `: ${title}` : ''}\n\n`
    for (const id of members) page += `- **${id}**\n${[...rules.get(id)!].map((test) => `  - ${test}\n`).join('')}`
  }
  return page
}

/** Returns the rulings of the page, except those marked as not built. With them, rulings without a test are listed. */
function builtRulings(): string[] {
  const page = readFileSync(new URL('../docs/rulings.md', import.meta.url), 'utf8')
  const entries = page.split(/(?=\*\*[NRCPTUX]\d+\*\* )/).slice(1)
  return entries
    .filter((entry) => !/\*Not\s+built\s+yet\.\*/.test(entry))
    .map((entry) => /\w+/.exec(entry)![0])
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
}
