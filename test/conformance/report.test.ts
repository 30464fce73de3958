import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  compareBaseline,
  countCases,
  drawBadge,
  overall,
  type Report,
  type Result,
  writeJunit,
  writeMarkdown,
} from '../../conformance/src/report.ts'
import type { VerdictName } from '../../conformance/src/verdict.ts'
import { readPrinted } from './support/printed.ts'

const result = (id: string, pair: string, verdict: VerdictName, more: Partial<Result> = {}): Result => ({
  case: id,
  area: id.split('/')[0]!,
  level: 'MUST',
  pair,
  verdict,
  differences: verdict === 'fail' ? ['client, step 1: text is "a"; expected "b"'] : [],
  ms: 12,
  ...more,
})

const results = [
  result('answers/a', 'chat>chat', 'pass'),
  result('answers/a', 'chat>messages', 'pass'),
  result('answers/b', 'chat>chat', 'pass'),
  result('answers/b', 'chat>messages', 'fail'),
  result('streams/c', 'chat>chat', 'deviation', { note: 'It <does> & "says" so. (docs/x.md)' }),
  result('streams/d', 'chat>chat', 'refused', { level: 'SHOULD', note: 'status 400 names x' }),
  result('streams/e', 'messages>chat', 'unsupported', { level: 'SHOULD' }),
  result('streams/f', 'chat>chat', 'flaky', { level: 'MAY' }),
]
const report: Report = {
  suite: '2026.12.0',
  gateway: { name: 'gate', version: '1.2' },
  day: '2026-12-01',
  node: '26.0.0',
  switchedOn: ['Prices.'],
  seconds: 3,
  results,
}

test('a case counts once, by its worst pair, and as unsupported only if it is so on all', () => {
  const worst = (...names: VerdictName[]) => overall(names.map((name) => result('a/b', 'chat>chat', name)))
  assert.equal(worst('pass', 'fail', 'flaky', 'deviation'), 'fail')
  assert.equal(worst('pass', 'flaky', 'deviation'), 'flaky')
  assert.equal(worst('pass', 'deviation', 'refused'), 'deviation')
  assert.equal(worst('pass', 'refused'), 'refused')
  assert.equal(worst('pass', 'unsupported'), 'pass')
  assert.equal(worst('unsupported', 'unsupported'), 'unsupported')
  const none = { pass: 0, fail: 0, refused: 0, unsupported: 0, deviation: 0, flaky: 0 }
  assert.deepEqual(countCases(results, 'MUST'), { ...none, pass: 1, fail: 1, deviation: 1 })
  assert.deepEqual(countCases(results, 'SHOULD'), { ...none, refused: 1, unsupported: 1 })
  assert.deepEqual(countCases(results, 'MAY'), { ...none, flaky: 1 })
})

test('the page has a table of pair and area for each level, no single number, and a reason for all that did not pass', () => {
  const page = writeMarkdown(report)
  assert.match(
    page,
    /^# gate 1\.2\n\nbothsides 2026\.12\.0 on 2026-12-01, Node 26\.0\.0, 3 s\.\n\nSwitched on:\n\n- Prices\.\n/,
  )
  assert.ok(page.includes('| MUST | 1 | 1 | 0 | 0 | 1 | 0 |'))
  assert.ok(page.includes('\n| Level | pass | fail | refused honestly | unsupported | declared deviation | flaky |\n'))
  assert.match(page, /\n\| MUST \|.+\|\n\| SHOULD \|.+\|\n\| MAY \|.+\|\n\n/)
  assert.ok(page.includes('| chat>chat | – | 2/2 | 0/1 1d |'))
  assert.ok(page.includes('| chat>messages | – | 1/2 | – |'))
  assert.ok(page.includes('| chat>chat | – | – | 0/1 1r |'))
  assert.ok(!page.includes('| messages>chat |'), 'a pair of which nothing ran has no row')
  assert.ok(page.includes('- **answers/b** (MUST; chat>messages): client, step 1: text is "a"; expected "b"'))
  assert.ok(page.includes('## Declared deviation\n\n- **streams/c** (MUST; chat>chat): It <does>'))
  assert.ok(page.includes('## Refused honestly\n\n- **streams/d** (SHOULD; chat>chat): status 400 names x'))
  assert.ok(!page.includes('%'))
})

test('the JUnit file counts failures and skips, and escapes what is not XML', () => {
  const xml = writeJunit(report)
  // `errors` is required of a suite by the schema of Jenkins' xUnit plugin, junit-10.xsd.
  assert.ok(xml.includes('<testsuite name="answers" tests="4" failures="1" errors="0" skipped="0" time="0.048">'))
  assert.ok(xml.includes('<testsuite name="streams" tests="4" failures="1" errors="0" skipped="3" time="0.048">'))
  assert.ok(xml.includes('<testcase classname="answers/a" name="chat&#62;chat" time="0.012"/>'))
  assert.ok(xml.includes('<failure message="fail">client, step 1: text is &#34;a&#34;; expected &#34;b&#34;</failure>'))
  assert.ok(
    xml.includes(
      '<skipped message="declared deviation">It &#60;does&#62; &#38; &#34;says&#34; so. (docs/x.md)</skipped>',
    ),
  )
  const odd = writeJunit({
    ...report,
    results: [result('a/b', 'chat>chat', 'fail', { differences: ['x\u0000\u001by'] })],
  })
  assert.ok(odd.includes('>xy</failure>'))
})

test('page, JUnit file and badge of a report are what test/conformance/printed has, to the byte', () => {
  assert.equal(writeMarkdown(report), readPrinted('report.md'))
  assert.equal(writeJunit(report), readPrinted('report.xml'))
  assert.equal(drawBadge(report, 'MUST'), readPrinted('must.svg'))
})

test('what was switched on is a list, and a case that failed on two pairs is named once, with its level left out if none ran', () => {
  const twice = ['chat>chat', 'chat>messages'].map((pair) => result('a/b', pair, 'fail', { note: 'a note' }))
  const page = writeMarkdown({ ...report, switchedOn: ['One.', 'Two.'], results: twice })
  assert.ok(page.includes('\n\nSwitched on:\n\n- One.\n- Two.\n\n## Cases\n'))
  assert.ok(page.endsWith('\n- **a/b** (MUST; chat>chat, chat>messages): a note\n'))
  assert.doesNotMatch(page, /## (SHOULD|MAY)/)
  const xml = writeJunit({ ...report, results: twice.slice(1) })
  assert.ok(xml.includes('>a note\nclient, step 1: text is &#34;a&#34;; expected &#34;b&#34;</failure>'))
})

test('the report of a gateway without known switches has no list of them', () => {
  assert.doesNotMatch(writeMarkdown({ ...report, switchedOn: [] }), /Switched on/)
})

test('a badge shows the verdicts of its level in words and by its colour', () => {
  const badge = drawBadge(report, 'MUST')
  assert.ok(badge.includes('>MUST 2026.12.0</text>'))
  assert.ok(badge.includes('1 pass · 1 fail · 1 declared</text>'))
  assert.ok(badge.includes('#b3261e'))
  const only = (verdict: VerdictName) =>
    drawBadge({ ...report, results: [result('a/b', 'chat>chat', verdict)] }, 'MUST')
  assert.ok(only('pass').includes('#2e7d32'))
  assert.ok(only('flaky').includes('#b3261e'))
  assert.ok(only('deviation').includes('#9a6700'))
  const none = drawBadge({ ...report, results: [] }, 'MAY')
  assert.ok(none.includes('not run') && none.includes('#57606a'))
  // 13 and 7 characters of 6.6, and four margins of 7.
  assert.match(none, /^<svg [^>]+ width="160" height="20"/)
})

test('a baseline covers failures by case and pair, and an entry that no longer fails is stale', () => {
  const why = 'known'
  const compare = (...baseline: { case: string; pair?: string; why: string }[]) => compareBaseline(results, baseline)
  assert.deepEqual(
    compare().unexpected.map((one) => one.case),
    ['answers/b', 'streams/f'],
  )
  assert.deepEqual(
    compare({ case: 'answers/b', why }).unexpected.map((one) => one.case),
    ['streams/f'],
  )
  assert.deepEqual(compare({ case: 'answers/b', pair: 'chat>messages', why }).stale, [])
  const other = { case: 'answers/b', pair: 'chat>chat', why }
  assert.deepEqual(compare(other).stale, [other])
  assert.equal(compare(other).unexpected.length, 2)
  assert.deepEqual(compare({ case: 'answers/a', why }).stale.length, 1)
  assert.deepEqual(compare({ case: 'answers/not-run', why }).stale, [])
})

test('a row of the tables begins with its pair, and a badge names each verdict of its level', () => {
  assert.match(writeMarkdown(report), /\n\| --- \| --- \|/)
  const lines = result('a/b', 'chat>chat', 'fail', { differences: ['one\ntwo', 'three'] })
  assert.ok(writeMarkdown({ ...report, results: [lines] }).endsWith('- **a/b** (MUST; chat>chat): one two\n'))
  assert.match(writeMarkdown(report), /\| Pair \| requests \| answers \|/)
  const one = (verdict: VerdictName) => drawBadge({ ...report, results: [result('a/b', 'chat>chat', verdict)] }, 'MUST')
  const words = {
    pass: 'pass',
    fail: 'fail',
    flaky: 'flaky',
    deviation: 'declared',
    refused: 'refused',
    unsupported: 'unsupported',
  }
  for (const [verdict, word] of Object.entries(words))
    assert.ok(one(verdict as VerdictName).includes(`>1 ${word}</text>`), verdict)
})
