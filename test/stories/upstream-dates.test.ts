import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { ClockBook } from '../../src/accounts/clock.ts'
import { UpstreamDates } from '../../src/live/upstream-dates.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { answers, asks, paths } from '../support/native.ts'
import { startRawUpstream, whole } from '../support/raw-upstream.ts'

/* Y15: this machine's clock is compared with the Date of upstream answers, and with the clock of a shared store. */

const nowMs = Date.UTC(2026, 10, 27, 12)
const minuteMs = 60_000
const dateOf = (aheadMs: number) => new Date(nowMs - aheadMs).toUTCString()

function compare(...said: (readonly [host: string, minutes: number])[]) {
  const lines: string[] = []
  const dates = new UpstreamDates(
    () => nowMs,
    (level, event) => lines.push(`${level} ${event}`),
  )
  for (const [host, minutes] of said) dates.note(host, dateOf(minutes * minuteMs))
  return { dates, lines, text: dates.text }
}

test('Y15 the clock is reported if the median of the last five dates, from at least two hosts, differs by over five minutes', () => {
  const [a, b, c] = ['a', 'b', 'c'] as const
  const far = compare([a, 6], [b, 6], [a, 6], [b, 6], [a, 6])
  assert.deepEqual(
    [far.lines, far.text],
    [
      ['error clock_apart'],
      "this machine's clock is 6 minutes ahead of the Date of upstream answers: check its time service",
    ],
  )
  assert.match(compare([a, -400], [b, -400], [c, -400], [a, -400], [b, -400]).text!, /400 minutes behind/)
  for (const [why, ...said] of [
    ['four', [a, 6], [b, 6], [a, 6], [b, 6]],
    ['one host', [a, 6], [a, 6], [a, 6], [a, 6], [a, 6], [a, 6]],
    ['one wrong host, however busy', [b, 0], [a, 60], [a, 60], [a, 60], [a, 60], [b, 0], [a, 60], [a, 60], [a, 60]],
    ['five minutes', [a, 5], [b, 5], [a, 5], [b, 5], [a, 5]],
    ['a median that is right', [a, 60], [b, 60], [c, 0], [b, 0], [c, 0]],
    ['hosts that contradict each other', [a, 60], [b, -60], [a, 60], [b, -60], [a, 60]],
  ] as [string, ...(readonly [string, number])[]][])
    assert.deepEqual(compare(...said).lines, [], why)
  const { dates, lines } = far
  for (let i = 0; i < 5; i++) dates.note(i % 2 ? a : b, dateOf(0))
  assert.deepEqual([lines, dates.text], [['error clock_apart', 'info clock_agrees'], undefined])
})

test('Y15 a busy host does not hide the dates of two others, and an invalid date is ignored', () => {
  const lines = compare(...Array.from({ length: 50 }, (_, i) => [i % 10 ? 'busy' : `${i % 20}`, 90] as const)).lines
  assert.deepEqual(lines, ['error clock_apart'])
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.oneof(fc.string(), fc.constantFrom('', '0', 'soon'))), {
        maxLength: 20,
      }),
      (said) => {
        const dates = new UpstreamDates(
          () => nowMs,
          () => {},
        )
        for (const [host, text] of said) if (Number.isNaN(Date.parse(text))) dates.note(host, text)
        assert.equal(dates.text, undefined)
      },
    ),
  )
})

test('Y15 through a gateway: an event, a line of status and a note of readyz, which stays 200', async () => {
  const upstreams = await Promise.all([startRawUpstream(), startRawUpstream()])
  for (const upstream of upstreams)
    upstream.play(whole(answers.chat, 200, { date: new Date(Date.now() - 30 * minuteMs).toUTCString() }))
  const at = (url: string) => ({ base_url: url, accounts: [{ name: 'a', key: 'upstream-key-1' }] })
  const gateway = await startTestGateway({
    upstream: () => ({ upstreams: { one: at(upstreams[0]!.url), two: at(upstreams[1]!.url) } }),
    models: ['one', 'two'].map((upstream) => testModel(upstream, 'chat', { upstream })),
  })
  const probe = async () => {
    const response = await gateway.askAdmin('/readyz')
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const ask = async (count: number) => {
    for (let i = 0; i < count; i++)
      assert.equal((await gateway.post(paths.chat, { ...asks.chat, model: i % 2 ? 'one' : 'two' })).status, 200)
  }
  await ask(4)
  assert.deepEqual(await probe(), { status: 200, body: { status: 'ready' } })
  await ask(1)
  const { status, body } = await probe()
  const text = /^this machine's clock is 30 minutes ahead of the Date of upstream answers/
  assert.deepEqual([status, body['status']], [200, 'ready'])
  assert.match(String(body['note']), text)
  assert.match(String(((await (await gateway.askAdmin('/api/v1/status')).json()) as { clock: string }).clock), text)
  assert.equal((await gateway.logWith({ event: 'clock_apart' }))['hosts'], 2)
  await gateway.close()
})

test('Y15 a replica whose clock differs by more than 5 s from the store’s is an event, and so is the end of that', () => {
  const lines: unknown[] = []
  const book = new ClockBook(
    (level, event, { ahead_s }) => lines.push([level, event, ahead_s]),
    () => 0,
  )
  const facts = { nowMs, newestMs: undefined, confirmed: undefined, problem: undefined, offsetMs: 0 }
  for (const aheadMs of [undefined, 5_000, -5_000, 5_001, 90_000, -6_000, 0]) {
    const news = aheadMs === undefined ? facts : { ...facts, aheadMs }
    book.hear(news)
  }
  assert.deepEqual(lines, [
    ['error', 'clock_differs', 5],
    ['info', 'clock_agrees', 0],
  ])
})
