import assert from 'node:assert/strict'
import test from 'node:test'
import {
  listNeeds,
  mergeNeeds,
  type NeedFacts,
  type NeedName,
  needLimits,
  needNames,
  needsFor,
} from '../../src/operations/needs.ts'

const nowMs = Date.parse('2026-11-27T12:00:00Z')
const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000]
const credit = 1_000_000_000n

const nothing: NeedFacts = {
  nowMs,
  accounts: [],
  spentAccounts: [],
  spentKeys: [],
  spentPersons: [],
  unusedKeys: [],
  hours: [],
  failingModels: [],
  services: [],
  webhooks: [],
  ledger: { isWritable: true, blockedAccounts: 0 },
  clock: null,
  certificates: [],
  prices: [],
}

const account = {
  ...{ id: 'acct_1', name: 'acme', balanceNanos: 3n * credit - 1n, spentNanos: 7n * credit },
  ...{ sinceMs: nowMs - 7 * dayMs, grantMs: undefined },
}
const budget = { budgetNanos: 5n * credit, fromMs: 1, untilMs: nowMs + dayMs }
const key = { id: 'key_1', name: 'ci', accountName: 'acme' }
const service: NeedFacts['services'][number] = {
  ...{ model: 'm', upstream: 'up', account: 'main', state: 'cooling', cause: 'upstream_500', failures: 3 },
  sinceMs: nowMs - 10 * minuteMs,
}
const hour = {
  ...{ fromMs: nowMs - 30 * minuteMs, spentNanos: 6n * credit, weekAgoNanos: 2n * credit, hasWeekAgo: true },
  key: { ...key, spentNanos: 5n * credit },
}

type Row = {
  rule: NeedName
  appears: Partial<NeedFacts>
  line: readonly [id: string, severity: string, text: string, link: string, command: string]
  /** One fact is just not enough. */
  vanishes: Partial<NeedFacts>
}

const rows: readonly Row[] = [
  {
    rule: 'ledger_blocked',
    appears: { ledger: { isWritable: false, blockedAccounts: 0 } },
    line: ['ledger_blocked', 'bad', 'The ledger takes no debits, so all requests are refused.', '', 'triwire status'],
    vanishes: { ledger: { isWritable: true, blockedAccounts: 0 } },
  },
  {
    rule: 'ledger_blocked',
    appears: { ledger: { isWritable: true, blockedAccounts: 2 } },
    line: [
      ...(['ledger_blocked', 'bad'] as const),
      'The ledger takes no debits of 2 accounts, whose requests are refused.',
      ...(['', 'triwire status'] as const),
    ],
    vanishes: {},
  },
  {
    rule: 'clock_wrong',
    appears: { clock: { text: 'the clock is in doubt', isDoubted: true } },
    line: ['clock_wrong', 'bad', 'A clock is wrong: the clock is in doubt.', '', 'triwire clock confirm'],
    vanishes: { clock: null },
  },
  {
    rule: 'clock_wrong',
    appears: { clock: { text: 'the newest entry is ahead of the clock', isDoubted: false } },
    line: ['clock_wrong', 'bad', 'A clock is wrong: the newest entry is ahead of the clock.', '', 'triwire status'],
    vanishes: { clock: null },
  },
  {
    rule: 'model_failing',
    appears: { failingModels: ['m'] },
    line: [
      ...(['model_failing:m', 'bad', 'At least half of the last answers of model m failed.'] as const),
      'requests?model=m&outcome=upstream_error%2Cupstream_cut%2Cupstream_stall',
      'triwire requests --model m --outcome upstream_error,upstream_cut,upstream_stall',
    ],
    vanishes: { failingModels: [] },
  },
  {
    rule: 'upstream_refused',
    appears: { services: [{ ...service, cause: 'upstream_401', failures: 1, sinceMs: nowMs }] },
    line: [
      ...(['upstream_refused:up/main', 'bad'] as const),
      'Upstream account up/main is refused by its provider (upstream_401).',
      ...(['upstreams', 'triwire upstream retry up'] as const),
    ],
    vanishes: { services: [{ ...service, failures: 1, sinceMs: nowMs }] },
  },
  {
    rule: 'upstream_refused',
    appears: { services: [{ ...service, account: null, state: 'no_key', cause: null, failures: 0 }] },
    line: [
      ...(['upstream_refused:up', 'bad', 'Upstream account up has no key.'] as const),
      ...(['upstreams', 'triwire check --online'] as const),
    ],
    vanishes: {},
  },
  {
    rule: 'upstream_cooling',
    appears: { services: [service, { ...service, model: 'n', sinceMs: nowMs }] },
    line: [
      ...([
        'upstream_cooling:up/main',
        'warn',
        'Upstream account up/main has failed for 10 minutes (upstream_500).',
      ] as const),
      ...(['upstreams', 'triwire upstream retry up'] as const),
    ],
    vanishes: {
      services: [
        { ...service, failures: 2 },
        { ...service, model: 'n', sinceMs: service.sinceMs + 1 },
      ],
    },
  },
  {
    rule: 'account_dry',
    appears: { accounts: [account] },
    line: [
      ...(['account_dry:acct_1', 'warn'] as const),
      'Account acme runs dry in 2 days: it has 3.00 credits, and spent 7.00 in 7 days.',
      ...(['accounts/acct_1', 'triwire account credit acct_1 AMOUNT --reference REFERENCE'] as const),
    ],
    vanishes: { accounts: [{ ...account, balanceNanos: 3n * credit }] },
  },
  {
    rule: 'account_dry',
    appears: { accounts: [{ ...account, balanceNanos: 0n }] },
    line: [
      ...(['account_dry:acct_1', 'bad', 'Account acme has no credit left, and spent 7.00 in 7 days.'] as const),
      ...(['accounts/acct_1', 'triwire account credit acct_1 AMOUNT --reference REFERENCE'] as const),
    ],
    // Its monthly grant comes in time.
    vanishes: { accounts: [{ ...account, grantMs: nowMs + 2 * dayMs }] },
  },
  {
    rule: 'account_budget_spent',
    appears: { spentAccounts: [{ ...budget, id: 'acct_1', name: 'acme' }] },
    line: [
      ...(['account_budget_spent:acct_1:1', 'warn'] as const),
      'Account acme has spent its budget of 5.00 credits, which renews on 2026-11-28 12:00 UTC.',
      ...(['accounts/acct_1', 'triwire account set acct_1 --budget BUDGET'] as const),
    ],
    vanishes: { spentAccounts: [] },
  },
  {
    rule: 'person_budget_spent',
    appears: { spentPersons: [{ ...budget, id: 'pers_1', name: 'Ada', accountId: 'acct_1' }] },
    line: [
      ...(['person_budget_spent:pers_1:1', 'warn'] as const),
      'Ada has spent their budget of 5.00 credits, which renews on 2026-11-28 12:00 UTC.',
      ...(['accounts/acct_1', 'triwire person set pers_1 --budget BUDGET'] as const),
    ],
    vanishes: { spentPersons: [] },
  },
  {
    rule: 'key_budget_spent',
    appears: { spentKeys: [{ ...budget, ...key, untilMs: undefined }] },
    line: [
      ...(['key_budget_spent:key_1:1', 'warn', 'Key ci of acme has spent its budget of 5.00 credits.'] as const),
      ...(['keys/key_1', 'triwire key set key_1 --budget BUDGET'] as const),
    ],
    vanishes: { spentKeys: [] },
  },
  {
    rule: 'spend_leap',
    appears: { hours: [{ ...hour, spentNanos: 0n }, hour] },
    line: [
      ...(['spend_leap:key_1', 'warn'] as const),
      'The hour from 2026-11-27 11:30 UTC cost 6.00 credits, the same hour last week 2.00; key ci of acme spent 5.00 of it.',
      ...(['keys/key_1', 'triwire key show key_1'] as const),
    ],
    vanishes: { hours: [{ ...hour, spentNanos: 6n * credit - 1n }] },
  },
  {
    rule: 'spend_leap',
    appears: { hours: [{ ...hour, spentNanos: 3n * credit, weekAgoNanos: 0n, key: undefined }] },
    line: [
      ...(['spend_leap', 'warn'] as const),
      'The hour from 2026-11-27 11:30 UTC cost 3.00 credits, the same hour last week 0.',
      ...(['requests', 'triwire usage table --by key'] as const),
    ],
    // Tiny sums, and a store that has no week to compare with.
    vanishes: {
      hours: [
        { ...hour, spentNanos: 2_999_999_999n, weekAgoNanos: 1n },
        { ...hour, spentNanos: 99n * credit, hasWeekAgo: false },
      ],
    },
  },
  {
    rule: 'webhook_unheard',
    appears: { webhooks: [{ url: 'https://a.example', pending: 1, sinceMs: nowMs }] },
    line: [
      ...(['webhook_unheard:https://a.example', 'warn'] as const),
      'Webhook https://a.example does not take its messages: 1 message waits.',
      ...(['webhooks', 'triwire webhooks'] as const),
    ],
    vanishes: { webhooks: [] },
  },
  {
    rule: 'certificate_ends',
    appears: { certificates: [{ listener: 'client', endsMs: nowMs + 21 * dayMs - 1 }] },
    line: [
      ...([`certificate_ends:client:${nowMs + 21 * dayMs - 1}`, 'warn'] as const),
      'The certificate of the client listener ends in 20 days.',
      ...(['', 'triwire reload'] as const),
    ],
    vanishes: { certificates: [{ listener: 'client', endsMs: nowMs + 21 * dayMs }] },
  },
  {
    rule: 'certificate_ends',
    appears: { certificates: [{ listener: 'admin', endsMs: nowMs }] },
    line: [
      ...([`certificate_ends:admin:${nowMs}`, 'bad'] as const),
      'The certificate of the admin listener ended on 2026-11-27 12:00 UTC.',
      ...(['', 'triwire reload'] as const),
    ],
    vanishes: {},
  },
  {
    rule: 'key_unused',
    appears: { unusedKeys: [{ ...key, sinceMs: nowMs - 90 * dayMs }] },
    line: [
      ...(['key_unused:key_1', 'note', 'Key ci of acme was not used for 90 days.'] as const),
      ...(['keys/key_1', 'triwire key revoke key_1'] as const),
    ],
    vanishes: { unusedKeys: [{ ...key, sinceMs: nowMs - 90 * dayMs + 1 }] },
  },
  {
    rule: 'price_change',
    appears: { prices: [1, 2].map((at) => ({ model: `m${at}`, fromMs: nowMs + 30 * dayMs })) },
    line: [
      ...([`price_change:${nowMs + 30 * dayMs}`, 'note'] as const),
      'Model m1 and 1 other have other prices from 2026-12-27 12:00 UTC on.',
      ...(['models', 'triwire price m1'] as const),
    ],
    vanishes: { prices: [nowMs, nowMs + 30 * dayMs + 1].map((fromMs) => ({ model: 'm', fromMs })) },
  },
]

for (const { rule, appears, line, vanishes } of rows)
  test(`CON-P3 ${rule} appears at its threshold, with its action, and disappears below it: ${line[2]}`, () => {
    const [found, ...more] = listNeeds({ ...nothing, ...appears })
    assert.deepEqual(more, [])
    assert.deepEqual([found!.id, found!.severity, found!.text, found!.link, found!.command], line)
    assert.equal(found!.rule, rule)
    assert.deepEqual(listNeeds({ ...nothing, ...vanishes }), [])
  })

test('CON-P3 every rule has a row, and without facts there is no line', () => {
  assert.deepEqual(new Set(rows.map(({ rule }) => rule)), new Set(needNames))
  assert.deepEqual(listNeeds(nothing), [])
})

test('CON-P3 the worst lines come first, and many of one kind become ten and a count', () => {
  const unusedKeys = Array.from({ length: 40 }, (_, at) => ({
    ...key,
    id: `key_${at}`,
    sinceMs: nowMs - (91 + at) * dayMs,
  }))
  const found = listNeeds({ ...nothing, unusedKeys, accounts: [account], failingModels: ['m'] })
  assert.deepEqual(
    found.map(({ severity }) => severity),
    ['bad', 'warn', ...Array(needLimits.linesMax + 1).fill('note')],
  )
  assert.deepEqual(
    [found[2]!.id, found.at(-1)!.text, found.at(-1)!.link],
    ['key_unused:key_39', 'There are 30 more keys that nobody uses.', 'keys'],
  )
})

test('Y22 finance sees only lines about money, and its own page; other roles see all', () => {
  const facts: NeedFacts = Object.assign({}, nothing, ...rows.map(({ appears }) => appears))
  const all = listNeeds(facts)
  const money = ['account_budget_spent', 'account_dry', 'price_change', 'spend_leap']
  const ofFinance = needsFor('finance', all)
  assert.deepEqual([...new Set(ofFinance.map(({ rule }) => rule))].toSorted(), money)
  assert.ok(ofFinance.every(({ link }) => link === 'finance'))
  for (const role of ['admin', 'viewer'] as const) assert.deepEqual(needsFor(role, all), all)
})

test('X9 lines of several servers form one list: each once, with the time at which the first server found it', () => {
  const [one] = listNeeds({ ...nothing, failingModels: ['m'] })
  const at = (ms: number) => ({ ...one!, since: new Date(ms).toISOString() })
  const other = listNeeds({ ...nothing, unusedKeys: [{ ...key, sinceMs: 0 }] })
  assert.deepEqual(mergeNeeds([[...other, at(2 * hourMs)], [at(hourMs)]]), [at(hourMs), ...other])
})
