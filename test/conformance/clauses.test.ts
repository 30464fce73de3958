import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadCases } from '../../conformance/src/load-cases.ts'

const page = readFileSync(new URL('../../conformance/results/clauses.md', import.meta.url), 'utf8')

/** Sections that were opened, as "RFC 9110 15.5.1" or "HTML 9.2.5 Parsing an event stream". */
const opened = new Set(
  [...page.matchAll(/^\| (HTML|RFC \d+) \| ([^|]+) \|/gm)].map(([, text, section]) => `${text} ${section}`),
)

const day = /^(2003|2012|2017|202[2-6])-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/

/** Each form of a source, with its URL. Groups of the source stand in the URL as $1 and $2. */
const forms: readonly (readonly [source: RegExp, url: string])[] = [
  [/^RFC (\d+), [^,]+, section \d+(?:\.\d+)*$/, String.raw`https://www\.rfc-editor\.org/rfc/rfc$1`],
  [
    /^HTML standard, 9\.2\.\d+ [A-Z][a-z ]+$/,
    String.raw`https://html\.spec\.whatwg\.org/multipage/server-sent-events\.html`,
  ],
  [
    /^OpenAI Node SDK (\d+\.\d+\.\d+), [\w. ,/]+$/,
    String.raw`https://github\.com/openai/openai-node/blob/v$1/[\w./-]+`,
  ],
  [
    /^Anthropic TypeScript SDK (\d+\.\d+\.\d+), [\w. ]+$/,
    String.raw`https://github\.com/anthropics/anthropic-sdk-typescript/blob/sdk-v$1/[\w./-]+`,
  ],
  [/^AI SDK, .+$/, String.raw`https://github\.com/vercel/ai/blob/[0-9a-f]{40}/[\w./-]+`],
  [/^Claude docs, .+$/, String.raw`https://platform\.claude\.com/docs/en/[\w/-]+`],
  [/^Claude Code docs, .+$/, String.raw`https://code\.claude\.com/docs/en/[\w/-]+`],
  [/^OpenAI (?:guide|API reference), .+$/, String.raw`https://(?:developers|platform)\.openai\.com/[\w/-]+`],
  [/^DeepSeek API docs, .+$/, String.raw`https://api-docs\.deepseek\.com/[\w/-]+`],
  [/^vLLM docs (\d+\.\d+\.\d+), .+$/, String.raw`https://docs\.vllm\.ai/en/v$1/[\w/-]+`],
]

/** Says what is wrong with the form of a clause; undefined if nothing is. */
function findFault({ source, url, day: read }: { source: string; url: string; day: string }): string | undefined {
  const form = forms.find(([pattern]) => pattern.test(source))
  if (!form) return `the source has no known form: ${source}`
  const [, first = ''] = form[0].exec(source)!
  const address = form[1].replace('$1', first.replaceAll('.', String.raw`\.`))
  if (!new RegExp(`^${address}$`).test(url)) return `${url} is not the address of ${source}`
  if (!day.test(read) || Number.isNaN(Date.parse(read))) return `${read} is no day`
  const rfc = /^(RFC \d+), .*section ([\d.]+)$/.exec(source)
  const section = rfc ? `${rfc[1]} ${rfc[2]}` : source.replace('HTML standard,', 'HTML')
  const isStandard = rfc !== null || source.startsWith('HTML ')
  return isStandard && !opened.has(section) ? `${section} has no row in clauses.md` : undefined
}

test('issue 51: each clause names its text with version or section, its address, and a day, and each cited section was opened', () => {
  const faults = loadCases().flatMap(({ id, clause }) => {
    if ('sdks' in clause) return clause.sdks.every(({ version }) => /^\d+\.\d+\.\d+$/.test(version)) ? [] : [id]
    const fault = findFault(clause)
    return fault ? [`${id}: ${fault}`] : []
  })
  assert.deepEqual(faults, [])
})

test('issue 51: no row of clauses.md is of a section that no case cites', () => {
  const cited = loadCases().map(({ clause }) => ('sdks' in clause ? '' : clause.source))
  for (const section of opened) {
    const [, rfc, number] = /^(RFC \d+) (.+)$/.exec(section) ?? []
    const isCited = rfc
      ? cited.some((source) => source.startsWith(`${rfc},`) && source.endsWith(`section ${number}`))
      : cited.includes(section.replace('HTML', 'HTML standard,'))
    assert.ok(isCited, section)
  }
})

const good = {
  source: 'RFC 9110, HTTP Semantics, section 15.5.1',
  url: 'https://www.rfc-editor.org/rfc/rfc9110',
  day: '2022-06-01',
}
const html = 'https://html.spec.whatwg.org/multipage/server-sent-events.html'
const wrong: readonly (readonly [what: string, change: Partial<typeof good>, says: RegExp])[] = [
  ['a section that nobody opened', { source: 'RFC 9110, HTTP Semantics, section 15.5.9' }, /no row in clauses.md/],
  ['an RFC without a section', { source: 'RFC 9110, HTTP Semantics' }, /no known form/],
  ['the address of another RFC', { url: 'https://www.rfc-editor.org/rfc/rfc9112' }, /is not the address/],
  ['another host', { url: 'https://example.com/rfc9110' }, /is not the address/],
  ['a day that is none', { day: '2026-13-01' }, /is no day/],
  ['a section of HTML under a wrong title', { source: 'HTML standard, 9.2.5 Authoring notes', url: html }, /no row/],
  [
    'an SDK at the address of another version',
    {
      source: 'OpenAI Node SDK 7.57.0, client',
      url: 'https://github.com/openai/openai-node/blob/v7.56.0/src/client.ts',
    },
    /is not the address/,
  ],
  ['an unknown source', { source: 'a blog' }, /no known form/],
]

test('issue 51: a correct clause has no fault', () => assert.equal(findFault(good), undefined))
for (const [what, change, says] of wrong)
  test(`issue 51: a clause with ${what} is reported`, () => assert.match(findFault({ ...good, ...change }) ?? '', says))
