import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { parse } from 'yaml'
import { convertLitellm } from '../../../src/cli/import/litellm-config.ts'
import { readLitellmDump } from '../../../src/cli/import/litellm-dump.ts'
import { type KeysOptions, planLitellmKeys } from '../../../src/cli/import/litellm-keys.ts'
import { testFolder } from '../../support/folder.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { until } from '../../support/waiting.ts'
import { runWarm } from '../run.ts'
import { type Entry, rows } from './litellm-rows.ts'

const today = '2026-11-27'
const nowMs = Date.parse('2026-11-28T00:00:00Z')
const dayMs = 86_400_000

/** As LiteLLM keeps a key (`hash_token` of litellm 1.110.2). */
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex')

/** A row of `/key/list?return_full_object=true`. */
const keyRow = (key: string, more: Entry = {}) => ({
  ...{ token: hashOf(key), key_name: `sk-...${key.slice(-4)}`, key_alias: null, spend: 0, expires: null, models: [] },
  ...{ aliases: {}, config: {}, user_id: null, team_id: null, permissions: {}, metadata: {}, blocked: null },
  ...{ max_budget: null, budget_duration: null, rpm_limit: null, tpm_limit: null, created_at: '2026-01-01T00:00:00Z' },
  ...more,
})

const teamRow = (id: string, more: Entry = {}) => ({
  ...{ team_id: id, team_alias: `Team ${id}`, max_budget: null, spend: 0, models: [], blocked: false, keys: [] },
  ...more,
})

const plain: KeysOptions = {
  ...{ account: 'litellm', teams: undefined, creditNanos: undefined, nowMs, groups: new Map(), aliases: new Map() },
}

const plan = (keys: Entry[], teams: Entry[] = [], options: Partial<KeysOptions> = {}) =>
  planLitellmKeys(readLitellmDump([JSON.stringify([{ keys, total_count: keys.length }, teams])]), {
    ...plain,
    ...options,
  })

const one = (more: Entry, teams: Entry[] = [], options: Partial<KeysOptions> = {}) =>
  plan([keyRow('sk-canary-1', more)], teams, options).foreign.keys[0]

const budget = (credits: number, per?: string) => ({ nanos: BigInt(credits) * 10n ** 9n, per })

test('issue 50 import litellm --keys reads both answers from one file, whatever their names and order are', () => {
  const keys = { keys: [keyRow('sk-canary-1', { team_id: 't1' })], total_count: 1, current_page: 1, total_pages: 1 }
  const teams = [teamRow('t1')]
  for (const file of [
    [keys, teams],
    [teams, keys],
    { keys, teams },
    { ...keys, teams },
    { keys, teams: { teams } },
    { key_list: keys, team_list: teams },
    { '/key/list': keys, '/team/list': teams },
    { key: { list: keys }, team: { list: teams } },
  ]) {
    const dump = readLitellmDump([JSON.stringify(file)])
    assert.deepEqual([dump.keys, dump.teams], [keys.keys, teams], JSON.stringify(file))
  }
})

test('issue 50 import litellm --keys carries the limits of a key', () => {
  assert.equal(one({})?.digest, createHash('sha256').update('sk-canary-1').digest('base64url'))
  assert.deepEqual(one({ key_alias: 'ci' })?.label, 'ci')
  for (const [fields, bounds] of [
    [{}, {}],
    [{ rpm_limit: 60 }, { requestsPerMinute: 60 }],
    [{ models: ['a', 'b/*'] }, { models: ['a', 'b/*'] }],
    [{ models: ['all-proxy-models'] }, {}],
    [{ models: ['*'] }, {}],
    [{ models: ['no-default-models'] }, { models: ['no-default-models'] }],
    [{ models: "['a', 'b/*']" }, { models: ['a', 'b/*'] }],
    [{ models: 'a,b/*' }, { models: ['a', 'b/*'] }],
    [{ models: '[]' }, {}],
    [{ rpm_limit: 1e12 }, { requestsPerMinute: 1_000_000 }],
    [{ max_budget: -5 }, { budget: { nanos: 1n, per: undefined } }],
    [{ models: ['a*b'] }, { models: ['no-default-models'] }],
    [{ max_budget: 10, spend: 4 }, { budget: budget(6) }],
    [{ max_budget: 10, spend: 14 }, { budget: { nanos: 1n, per: undefined } }],
    [{ max_budget: 10, spend: 4, budget_duration: '24h' }, { budget: budget(10, 'day') }],
    [{ max_budget: 10, budget_duration: '1d' }, { budget: budget(10, 'day') }],
    [{ max_budget: 10, budget_duration: '7d' }, { budget: budget(10, 'week') }],
    [{ max_budget: 10, budget_duration: '30d' }, { budget: budget(10, 'month') }],
    [{ max_budget: 10, budget_duration: '1mo' }, { budget: budget(10, 'month') }],
    [{ max_budget: 10, budget_duration: '1h' }, { budget: budget(10, 'day') }],
    [{ max_budget: 10, budget_duration: '14d' }, { budget: budget(10, 'month') }],
    [{ max_budget: 10, spend: 1, budget_duration: '1y' }, { budget: budget(9) }],
    [
      { litellm_budget_table: { max_budget: 3, budget_duration: '1d', rpm_limit: 2 } },
      { budget: budget(3, 'day'), requestsPerMinute: 2 },
    ],
  ] as [Entry, Entry][])
    assert.deepEqual(JSON.stringify(one(fields)?.bounds, big), JSON.stringify(bounds, big), JSON.stringify(fields))
  assert.equal(one({ user_id: 'u-1' })?.externalId, 'u-1')
  assert.equal(one({ user_id: 'default_user_id' })?.externalId, undefined)
  assert.deepEqual(one({ models: ['g'] }, [], { groups: new Map([['g', ['a', 'b']]]) })?.bounds.models, ['a', 'b'])
})

const big = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)

test('issue 50 import litellm --keys leaves out keys that LiteLLM itself refuses, and says why', () => {
  for (const [fields, why] of [
    [{ blocked: true }, /blocked/],
    [{ blocked: 'True' }, /blocked/],
    [{ blocked: 1 }, /blocked/],
    [{ rpm_limit: 0 }, /its rpm_limit is 0/],
    [{ tpm_limit: '0' }, /its tpm_limit is 0/],
    [{ litellm_budget_table: { max_parallel_requests: 0 } }, /its max_parallel_requests is 0/],
    [{ expires: '2026-11-27T23:59:59' }, /expired/],
    [{ expires: '2026-11-27T23:59:59+00:00' }, /expired/],
    [{ team_id: 'litellm-dashboard' }, /pages/],
    [{ token: 'not a digest' }, /no SHA-256/],
  ] as [Entry, RegExp][]) {
    const { foreign, settings } = plan([keyRow('sk-canary-1', fields), keyRow('sk-canary-2')])
    assert.equal(foreign.keys.length, 1)
    assert.match(settings.find(({ fate }) => fate === 'left')!.why, why)
  }
  const { settings } = plan([
    keyRow('sk-canary-1', { tpm_limit: 5, metadata: { a: {} } }),
    keyRow('sk-canary-2', { tpm_limit: 6 }),
  ])
  assert.deepEqual(
    settings.filter(({ fate }) => fate === 'left').map(({ setting }) => setting),
    ['tpm_limit of key sk-...ry-1, key sk-...ry-2'],
  )
  const aliased = (model_aliases: unknown) => ({ litellm_model_table: { id: 7, model_aliases }, model_id: 7 })
  const teams = [aliased({ quick: 'm' }), aliased('{"quick":"m"}'), { model_id: 7 }, aliased({}), aliased('{}'), {}]
  const rows = teams.map((more, at) => teamRow(`t${at}`, more))
  assert.deepEqual(
    plan([keyRow('sk-canary-1')], rows).settings.filter(({ fate }) => fate === 'left'),
    [
      {
        setting: 'model_aliases of team Team t0, team Team t1, team Team t2',
        ...{ fate: 'left', why: 'a team has no aliases: write `also` of a model' },
      },
    ],
  )
  const seven = [1, 2, 3, 4, 5, 6, 7].map((n) => keyRow(`sk-canary-${n}`, { key_alias: `k${n}`, tpm_limit: 5 }))
  assert.equal(
    plan(seven).settings.find(({ fate }) => fate === 'left')!.setting,
    'tpm_limit of key k1, key k2, key k3, key k4, key k5 and 2 more',
  )
})

/** A row of `/user/list`, with the columns of `LiteLLM_UserTable` that say something (schema.prisma of litellm 1.110.2). */
const userRow = (id: string, more: Entry = {}) => ({
  ...{ user_id: id, user_email: null, user_alias: null, user_role: 'internal_user', teams: [], max_budget: null },
  ...{ spend: 0, models: [], metadata: {}, tpm_limit: null, rpm_limit: null, budget_duration: null },
  ...more,
})

const memberRow = (user: string, team: string, table: Entry, spend = 0) => ({
  ...{ user_id: user, team_id: team, budget_id: `${user}-${team}`, spend, litellm_budget_table: table },
})

test('issue 50 import litellm --keys carries budgets, limits, names and addresses of users to people', () => {
  const personal = { max_budget: 20, budget_duration: '30d', rpm_limit: 9 }
  const own = keyRow('sk-1', { user_id: 'u' })
  const ofTeam = (key: string, team: string) => keyRow(key, { user_id: 'u', team_id: team })
  for (const [what, user, members, keys, person, leftWhy] of [
    ['no row', [], [], [own], undefined],
    ['no limit and no name', [userRow('u')], [], [own], undefined],
    [
      'limits',
      [userRow('u', personal)],
      [],
      [own],
      { account: 'litellm', bounds: { budget: budget(20, 'month'), requestsPerMinute: 9 } },
    ],
    [
      'a budget for good',
      [userRow('u', { max_budget: 20, spend: 5 })],
      [],
      [own],
      { account: 'litellm', bounds: { budget: budget(15) } },
    ],
    [
      'a spent budget',
      [userRow('u', { max_budget: 2, spend: 5 })],
      [],
      [own],
      { account: 'litellm', bounds: { budget: { nanos: 1n, per: undefined } } },
    ],
    [
      'a name and an address',
      [userRow('u', { user_alias: ' Ada ', user_email: 'Ada@Example.com' })],
      [],
      [own],
      { name: 'Ada', email: 'ada@example.com', bounds: {} },
    ],
    ['words that are neither', [userRow('u', { user_alias: 'a\u200bb', user_email: 'ada' })], [], [own], undefined],
    // LiteLLM asks the limits of a user for keys without a team only.
    ['keys of a team', [userRow('u', personal)], [], [ofTeam('sk-1', 't1')], undefined, /of which the user has none/],
    [
      'a member of a team',
      [userRow('u', personal)],
      [memberRow('u', 't1', { max_budget: 7, budget_duration: '7d', rpm_limit: 3 })],
      [ofTeam('sk-1', 't1')],
      { account: 'Team t1', bounds: { budget: budget(7, 'week'), requestsPerMinute: 3 } },
      /of which the user has none/,
    ],
    [
      'a member with a budget for good',
      [],
      [memberRow('u', 't1', { max_budget: 7 }, 3)],
      [ofTeam('sk-1', 't1')],
      { account: 'Team t1', bounds: { budget: budget(4) } },
    ],
    [
      'keys with and without a team',
      [userRow('u', personal)],
      [],
      [own, ofTeam('sk-2', 't1')],
      undefined,
      /triwire person set/,
    ],
    [
      'a member of two teams',
      [],
      [memberRow('u', 't2', { max_budget: 7 })],
      [ofTeam('sk-1', 't1'), ofTeam('sk-2', 't2')],
      undefined,
      /triwire person set/,
    ],
  ] as [string, Entry[], Entry[], Entry[], object | undefined, RegExp?][]) {
    const teams = [teamRow('t1', { max_budget: 5, team_memberships: members }), teamRow('t2')]
    const texts = [JSON.stringify({ keys }), JSON.stringify(teams), JSON.stringify({ users: user, total: user.length })]
    const { foreign, settings } = planLitellmKeys(readLitellmDump(texts), plain)
    const expected = person === undefined ? [] : [{ externalId: 'u', ...person }]
    assert.deepEqual(foreign.persons, expected, what)
    assert.deepEqual(
      foreign.accounts.map(({ name }) => name).filter((name) => name.startsWith('Team')),
      ['Team t1'],
      `${what}: a member is no team`,
    )
    const reason = settings.find(({ setting }) => setting === 'limits of user u')?.why
    if (leftWhy) assert.match(reason ?? '', leftWhy, what)
    else assert.equal(reason, undefined, what)
  }
})

test('issue 50 a user or member whom LiteLLM refuses gets no keys here, and a user’s models limit keys without a team', () => {
  const key = { user_id: 'u' }
  const planned = (users: Entry[], fields: Entry = key, teams: Entry[] = []) =>
    planLitellmKeys(
      readLitellmDump([JSON.stringify({ keys: [keyRow('sk-1', fields)] }), JSON.stringify([users, teams])]),
      plain,
    )
  const refused = planned([userRow('u', { rpm_limit: 0 })])
  assert.deepEqual(refused.foreign.keys, [])
  assert.match(refused.settings[0]!.why, /LiteLLM refuses its user \(its rpm_limit is 0\)/)
  const inTeam = { ...key, team_id: 't1' }
  const member = teamRow('t1', { team_memberships: [memberRow('u', 't1', { rpm_limit: 0 })] })
  assert.deepEqual(planned([], inTeam, [member]).foreign.keys, [])
  assert.equal(planned([userRow('u', { rpm_limit: 0 })], inTeam, [teamRow('t1')]).foreign.keys.length, 1)
  const models = (users: Entry[], fields: Entry) =>
    planned(users, fields, [teamRow('t1')]).foreign.keys[0]!.bounds.models
  assert.deepEqual(models([userRow('u', { models: ['a'] })], { ...key, models: ['a', 'b'] }), ['a'])
  assert.deepEqual(models([userRow('u', { models: ['a'] })], key), ['a'])
  assert.equal(models([userRow('u', { models: ['a'] })], inTeam), undefined)
  assert.match(
    planned([userRow('u'), userRow('v'), userRow('w')])
      .settings.map(({ setting }) => setting)
      .join(),
    /users without a key: 2/,
  )
})

test('issue 50 metadata of keys and teams are carried if they are short texts, and the rest is listed by name', () => {
  const secret = 'sk-canary-aaaaaaaaaaaaaaaaaaaaaaaa'
  for (const [metadata, carried, left] of [
    [{}, undefined, []],
    [{ a: null, b: {}, c: [] }, undefined, []],
    [{ b: 'x', a: 1, c: false }, { a: '1', b: 'x', c: 'false' }, []],
    [{ tags: ['x', 'y'] }, { tags: 'x,y' }, []],
    [{ model_rpm_limit: { large: 3 }, a: 'x' }, { a: 'x' }, ['model_rpm_limit']],
    [{ logging: [{ callback_name: 'l' }] }, undefined, ['logging']],
    [{ 'no good name': 'x', long: 'x'.repeat(501), hidden: 'a\u200bb' }, undefined, ['no good name', 'long', 'hidden']],
    [{ token: secret }, undefined, ['token']],
    [{ [secret]: 'x' }, undefined, ['that may be a key']],
    [
      Object.fromEntries(Array.from({ length: 52 }, (_, n) => [`n${n}`, 'x'])),
      Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`n${n}`, 'x'])),
      ['n50', 'n51'],
    ],
  ] as [Entry, Entry | undefined, string[]][]) {
    const { foreign, settings } = plan(
      [keyRow('sk-1', { metadata }), keyRow('sk-2', { team_id: 't1' })],
      [teamRow('t1', { metadata, max_budget: 3 })],
    )
    const said = JSON.stringify(metadata).slice(0, 80)
    assert.deepEqual(foreign.keys[0]!.bounds.metadata, carried, said)
    assert.deepEqual(foreign.accounts.find(({ name }) => name === 'Team t1')!.bounds.metadata, carried, said)
    assert.deepEqual(
      settings.filter(({ setting }) => setting.startsWith('metadata')).map(({ setting }) => setting),
      left.map((name) => `metadata ${name} of team Team t1, key sk-...sk-1`),
      said,
    )
    assert.doesNotMatch(JSON.stringify(settings), /canary/)
  }
  const label = plan([keyRow('sk-1', { team_id: 't1' })], [teamRow('t1', { metadata: { a: 'x' } })])
  assert.match(label.settings.map(({ setting }) => setting).join(), /metadata of team Team t1/)
  const [account] = plan([keyRow('sk-1', { team_id: 't1' })], [teamRow('t1', { max_budget: 3 })]).foreign.accounts
  assert.equal(account!.bounds.externalId, 't1')
})

test('issue 50 users and members are read from each form of an answer and from the table of users', () => {
  const user = userRow('u', { max_budget: 4, organization_memberships: [{ user_id: 'u', user_role: 'org_admin' }] })
  const { max_budget: _, ...bare } = userRow('u')
  const key = keyRow('sk-1', { user_id: 'u', team_id: 't1' })
  const member = memberRow('u', 't1', { max_budget: 7 })
  const team = teamRow('t1', { team_memberships: [member], members_with_roles: [{ role: 'user', user_id: 'u' }] })
  for (const texts of [
    [JSON.stringify({ keys: [key], users: [user], teams: [team] })],
    [JSON.stringify({ keys: [{ ...key, user }], teams: [team] })],
    [JSON.stringify({ user_id: 'u', user_info: user, keys: [key], teams: [team] })],
    [JSON.stringify({ keys: [key] }), JSON.stringify({ '/user/list': { users: [user] } }), JSON.stringify(team)],
    [
      JSON.stringify({ keys: [key] }),
      'user_id,user_role,teams,max_budget,team_id\nu,internal_user,{t1},4,\n',
      JSON.stringify({ team_id: 't1', team_info: { ...team, team_memberships: [] }, team_memberships: [member] }),
    ],
  ]) {
    const { users, members, teams } = readLitellmDump(texts)
    assert.deepEqual(
      users.map(({ user_id: id, max_budget: max }) => [id, Number(max)]),
      [['u', 4]],
      texts.join(),
    )
    assert.deepEqual(members, [member])
    assert.deepEqual(
      teams.map(({ team_alias: alias }) => alias),
      ['Team t1'],
    )
  }
  assert.equal(readLitellmDump([JSON.stringify({ keys: [key], users: [bare] })]).users.length, 1)
})

test('issue 50 a blocked key is left out in each spelling of true in a table', () => {
  const table = (word: string) => `token,blocked\n${hashOf('sk-1')},${word}\n${hashOf('sk-2')},\n`
  const count = (word: string) => planLitellmKeys(readLitellmDump([table(word)]), plain).foreign.keys.length
  for (const word of ['t', 'true', 'TRUE', 'True', '1', 'yes']) assert.equal(count(word), 1, word)
  for (const word of ['f', 'false', 'False', '0', '', 'NULL']) assert.equal(count(word), 2, word)
})

test('issue 50 a table may have its lists as PostgreSQL, JSON and Python write them', () => {
  for (const list of ['"{m,n/*}"', '"[""m"",""n/*""]"', `"['m', 'n/*']"`]) {
    const { foreign } = planLitellmKeys(readLitellmDump([`token,models\n${hashOf('sk-1')},${list}\n`]), plain)
    assert.deepEqual(foreign.keys[0]!.bounds.models, ['m', 'n/*'], list)
  }
})

test('issue 50 a key may use those of its models that its team may use too, as in LiteLLM', () => {
  const groups = new Map([['fast', ['f1', 'f2']]])
  for (const [own, ofTeam, models] of [
    [['a', 'b'], ['a', 'c'], ['a']],
    [['a', 'b'], [], ['a', 'b']],
    [['a', 'b'], ['*'], ['a', 'b']],
    [[], ['a'], ['a']],
    [['all-team-models'], ['a'], ['a']],
    [['*'], ['a'], ['a']],
    [['a/*'], ['a/x', 'b'], ['a/x']],
    [['a/x', 'b'], ['a/*'], ['a/x']],
    [['fast'], ['f2', 'b'], ['f2']],
    [['f1', 'b'], ['fast'], ['f1']],
    [['a'], ['b'], ['no-default-models']],
    [['a'], ['no-default-models'], ['no-default-models']],
  ])
    assert.deepEqual(
      one({ team_id: 't1', models: own }, [teamRow('t1', { models: ofTeam })], { groups })!.bounds.models,
      models,
      `${own} of ${ofTeam}`,
    )
})

test('a key may use the aliases of its models, as in LiteLLM', async () => {
  const aliases = new Map([
    ['quick', 'f1'],
    ['old', 'a'],
  ])
  const groups = new Map([['fast', ['f1', 'f2']]])
  for (const [own, ofTeam, models] of [
    [['a'], [], ['a', 'old']],
    [['old'], [], ['old']],
    [['fast'], [], ['f1', 'f2', 'quick']],
    [['a', 'f1'], ['a'], ['a', 'old']],
    [['f*'], [], ['f*', 'quick']],
    [['a', 'o*'], [], ['a', 'o*']],
    [['b'], [], ['b']],
    [[], ['a'], ['a', 'old']],
    [[], [], undefined],
  ])
    assert.deepEqual(
      one({ team_id: 't1', models: own }, [teamRow('t1', { models: ofTeam })], { groups, aliases })!.bounds.models,
      models,
      `${own} of ${ofTeam}`,
    )
  const cwd = testFolder('cli')
  mkdirSync(cwd, { recursive: true })
  const aliased = 'router_settings: { model_group_alias: { quick: luna, lost: nowhere } }\n'
  writeFileSync(join(cwd, 'l.yaml'), `${rows[0]!.file}${aliased}`)
  writeFileSync(join(cwd, 'dump.json'), JSON.stringify({ keys: [keyRow('sk-1', { models: rows[0]!.models })] }))
  const words = ['import', 'litellm', 'l.yaml', '--keys', 'dump.json', '--output', 'triwire.yaml', '--store', 's.db']
  const run = await runWarm(words, { cwd })
  assert.equal(run.code, 0, run.stderr)
  const [key] = (await runWarm(['key', 'list', '--json', '--store', 's.db'], { cwd })).json as unknown as Entry[]
  assert.deepEqual(key!['models'], [...rows[0]!.models, 'quick'])
})

test('the import names the grant of a team with its budget, and no command is cut off', async () => {
  const cwd = testFolder('cli')
  mkdirSync(cwd, { recursive: true })
  writeFileSync(join(cwd, 'l.yaml'), rows[0]!.file)
  const name = 'Engineers of the platform in all three offices'
  const teams = [
    teamRow('t1', { team_alias: name, max_budget: 500, budget_duration: '30d', spend: 123.5 }),
    teamRow('t2', { max_budget: 5, budget_duration: '1d' }),
    teamRow('t3', { max_budget: 5 }),
  ]
  const keys = ['t1', 't2', 't3'].map((team) => keyRow(`sk-${team}`, { team_id: team }))
  writeFileSync(join(cwd, 'dump.json'), JSON.stringify({ keys, teams }))
  const words = ['import', 'litellm', 'l.yaml', '--keys', 'dump.json', '--output', 'triwire.yaml', '--dry-run']
  const { stdout } = await runWarm(words, { cwd })
  assert.match(stdout, new RegExp(`376\\.5 are booked once; .* triwire account grant '${name}' 500/month$`, 'm'))
  assert.match(stdout, /team Team t2: 5 are booked once; .* triwire account grant 'Team t2' CREDITS\/month$/m)
  assert.match(stdout, /triwire account set NAME --rpm 3000$/m)
})

test('issue 50 a key and its successor keep the end that LiteLLM has for the key, in any form', () => {
  const later = '2027-11-28T00:00:00Z'
  assert.deepEqual(ends({}), [undefined, undefined])
  assert.deepEqual(ends({ expires: later }), [Date.parse(later), Date.parse(later)])
  assert.deepEqual(ends({ expires: '2026-12-01 00:00:00' }), Array(2).fill(Date.parse('2026-12-01T00:00:00Z')))
  assert.deepEqual(ends({ expires: '2026-12-01 00:00:00+00' }), ends({ expires: '2026-12-01' }))
  assert.deepEqual(ends({ expires: '2026-12-01 02:00:00.5+02' })[0], Date.parse('2026-12-01T00:00:00.5Z'))
  assert.throws(() => ends({ expires: 'soon' }), /expires at "soon", which is no time/)
  assert.throws(() => ends({ expires: 1_893_456_000 }), /expires at 1893456000, which is no time/)
  assert.throws(() => one({ max_budget: '1,000' }), /max_budget of a key or a team is "1,000", which is no number/)
})

function ends(fields: Entry) {
  const key = one(fields)!
  return [key.expiresMs, key.ownExpiresMs]
}

test('issue 50 a team with a budget or limits becomes an account with the rest, other teams a label; --teams overrides this', () => {
  const rich = teamRow('t1', { max_budget: 50, spend: 20.5, rpm_limit: 9, models: ['m'] })
  const poor = teamRow('t2')
  const keys = [keyRow('sk-1', { team_id: 't1' }), keyRow('sk-2', { team_id: 't2' }), keyRow('sk-3')]
  const shown = (options: Partial<KeysOptions>) => {
    const { foreign, labels, notes } = plan(keys, [rich, poor], options)
    const accounts = foreign.accounts.map(({ name, creditNanos, bounds }) => [
      name,
      creditNanos,
      bounds.requestsPerMinute,
    ])
    return { accounts, keys: foreign.keys.map((key) => [key.account, key.bounds.labels?.[0]]), labels, notes }
  }
  const usual = shown({})
  assert.deepEqual(usual.accounts, [
    ['Team t1', 29_500_000_000n, 9],
    ['litellm', 0n, undefined],
  ])
  assert.deepEqual(usual.keys, [
    ['Team t1', undefined],
    ['litellm', 'team=Team-t2'],
    ['litellm', undefined],
  ])
  assert.deepEqual(usual.labels, { team: ['Team-t2'] })
  assert.match(usual.notes.join(), /the account litellm has no credit, so its keys get 402/)
  const broke = shown({ teams: 'accounts', creditNanos: 0n })
  assert.match(broke.notes.join(), /or run triwire account credit 'Team t1' 500 --reference TEXT/)
  assert.deepEqual(plan(keys, [rich, poor]).foreign.keys[0]!.bounds.models, ['m'])
  assert.deepEqual(
    shown({ teams: 'accounts', creditNanos: 7n }).accounts.map(([name, credit]) => `${name} ${credit}`),
    ['Team t1 7', 'Team t2 7', 'litellm 7'],
  )
  assert.deepEqual(
    shown({ teams: 'labels' }).keys.map(([, label]) => label),
    ['team=Team-t1', 'team=Team-t2', undefined],
  )
  const twins = plan(keys, [
    { ...rich, team_alias: 'A' },
    { ...poor, team_alias: 'A', max_budget: 1 },
  ])
  assert.deepEqual(
    twins.foreign.accounts.map(({ name }) => name),
    ['A', 'A (t2)', 'litellm'],
  )
  // Ids of teams may begin alike. Each team keeps an account of its own, and the money of it.
  const alike = [1, 2, 3, 4].map((n) => teamRow(`team-prod-${n}`, { team_alias: 'dev', max_budget: n }))
  assert.deepEqual(
    plan(keys, alike.toReversed()).foreign.accounts.map(
      ({ name, creditNanos }) => `${name} ${creditNanos / 10n ** 9n}`,
    ),
    ['dev 1', 'dev (team-pro) 2', 'dev (team-prod-3) 3', 'dev (team-prod-4) 4', 'litellm 0'],
  )
  // Names that differ only in letters that a label cannot have, or only behind its end, or not at all.
  const names = ['Müller', 'Möller', '研发', '市场', `${'x'.repeat(64)}1`, `${'x'.repeat(64)}2`, 'dev', 'dev']
  const teams = names.map((alias, n) => teamRow(`${n} team-${n}`, { team_alias: alias }))
  const used = teams.map((team, n) => keyRow(`sk-t${n}`, { team_id: team['team_id'] }))
  assert.deepEqual(
    plan(used, teams.toReversed()).foreign.keys.map(({ bounds }) => bounds.labels?.[0]?.replace(/x+/, 'x')),
    ['M-ller', 'M-ller-1-team-1', '2-team-2', '3-team-3', 'x', 'x-5-team-5', 'dev', 'dev-7-team-7'].map(
      (value) => `team=${value}`,
    ),
  )
  assert.equal(plan(keys, [{ ...rich, blocked: true }]).foreign.accounts[0]!.state, 'suspended')
  assert.equal(plan(keys, [{ ...poor, blocked: true }]).foreign.keys.length, 2)
  assert.equal(plan(keys, [{ ...rich, rpm_limit: 0 }]).foreign.accounts[0]!.state, 'suspended')
})

test('issue 50 the import reports that --credit replaces a budget of a team that is not renewed here', () => {
  const keys = [keyRow('sk-1', { team_id: 't1' })]
  const told = (fields: Entry, creditNanos: bigint | undefined) => {
    const { foreign, settings, notes } = plan(keys, [teamRow('t1', { max_budget: 50, ...fields })], { creditNanos })
    const replaced = settings.filter(({ fate }) => fate === 'replaced').map(({ setting, why }) => `${setting}: ${why}`)
    return [foreign.accounts[0]!.creditNanos, replaced.join(), /stricter/.test(notes.join())]
  }
  const replaced = 'max_budget of team Team t1: by --credit, the account Team t1 may spend 500 credits'
  const given = 500_000_000_000n
  assert.deepEqual(told({}, given), [given, replaced, false])
  assert.deepEqual(told({ budget_duration: '90d' }, given), [given, replaced, false])
  assert.deepEqual(told({ budget_duration: '30d' }, given), [given, '', false])
  assert.deepEqual(told({ budget_duration: '90d' }, undefined), [50_000_000_000n, '', true])
})

test('issue 50 the import reports the limit of requests a minute of accounts that LiteLLM does not limit', () => {
  const notesOf = (teams: Entry[]) => plan([keyRow('sk-1', { team_id: 't1' })], teams).notes.join()
  const rates = /may make as many requests a minute as limits\.requests_per_minute says.* --rpm 3000/
  assert.match(notesOf([teamRow('t1')]), rates)
  assert.match(notesOf([teamRow('t1', { max_budget: 1 })]), rates)
  assert.doesNotMatch(notesOf([teamRow('t1', { max_budget: 1, rpm_limit: 5 })]), rates)
})

test('issue 50 a dump is JSON of one or more answers, or both tables as CSV', () => {
  const [a, b] = [keyRow('sk-a', { team_id: 't1', models: ['m', 'n'] }), keyRow('sk-b')]
  const team = teamRow('t1', { max_budget: 5, keys: [a] })
  const csv = [
    `token,key_name,team_id,models,metadata,blocked,max_budget,expires\n${a.token},sk-...sk-a,t1,"{m,n}","{""a"": ""x,y""}",f,,\n${b.token},sk-...sk-b,,{},{},,1.5,2027-01-01 00:00:00\n`,
    'team_id,team_alias,max_budget,spend,models,blocked\nt1,Team t1,5,0,{},f\n',
  ]
  for (const texts of [
    [JSON.stringify({ keys: [a, b], teams: [team] })],
    [JSON.stringify([{ keys: [a] }, { keys: [b] }, [team]])],
    [`${JSON.stringify({ keys: [a, b] })}\n${JSON.stringify([team])}`],
    [JSON.stringify({ keys: [b] }), JSON.stringify([team])],
    csv,
  ]) {
    const { keys, teams } = readLitellmDump(texts)
    assert.deepEqual(keys.map(({ token }) => token).sort(), [a.token, b.token].sort())
    assert.deepEqual(
      teams.map(({ team_id }) => team_id),
      ['t1'],
    )
    assert.deepEqual(keys.find(({ token }) => token === a.token)!['models'], ['m', 'n'])
  }
  for (const [text, why] of [
    [JSON.stringify({ keys: [a.token] }), /return_full_object=true/],
    ['{}', /it has no key/],
    ['{"a":', /neither JSON nor CSV/],
    ['a,b\n1,2', /neither `token` nor `team_id` nor `user_id`/],
    ['token,x\nt', /line 2: has 1 cells/],
  ] as const)
    assert.throws(() => readLitellmDump([text]), why)
})

test('issue 50 the import says if the dump lacks pages of the keys or users that LiteLLM has', () => {
  const page = (number: number, key: string) => ({ keys: [keyRow(key)], current_page: number, total_pages: 3 })
  const notesOf = (...texts: unknown[]) =>
    planLitellmKeys(readLitellmDump(texts.map((text) => JSON.stringify(text))), plain).notes.join()
  const users = { users: [userRow('u-1')], page: 1, page_size: 100, total_pages: 2 }
  assert.match(
    notesOf(page(1, 'sk-1'), page(3, 'sk-3')),
    /the dump has 2 of 3 pages of the keys: export the others too/,
  )
  assert.match(notesOf([page(1, 'sk-1'), page(2, 'sk-2')], page(3, 'sk-3'), users), /has 1 of 2 pages of the users/)
  assert.doesNotMatch(notesOf([page(1, 'sk-1'), page(2, 'sk-2')], page(3, 'sk-3')), /pages of the/)
})

const secrets = ['sk-canary-plain', 'sk-tri-canary', 'sk-canary-teamed', 'sk-canary-limited', 'sk-canary-of-label']
const dump = {
  keys: [
    keyRow(secrets[0]!, { user_id: 'u-1', key_alias: 'ada' }),
    keyRow(secrets[1]!, { expires: new Date(Date.now() + dayMs).toISOString() }),
    keyRow(secrets[2]!, { team_id: 't1' }),
    keyRow(secrets[3]!, { max_budget: 5, budget_duration: '30d', rpm_limit: 100, team_id: 't1' }),
    keyRow(secrets[4]!, { team_id: 't2' }),
    keyRow('sk-canary-expired', { expires: '2026-01-01T00:00:00Z' }),
  ],
  teams: [teamRow('t1', { max_budget: 40 }), teamRow('t2')],
  users: [userRow('u-1', { user_alias: 'Ada', max_budget: 30, budget_duration: '30d' })],
}

/** The configuration with all upstreams at one address, in their plain form: no cloud has the model in its path. */
function redirected(made: Entry, url: string): Entry {
  const config = JSON.parse(JSON.stringify(made).replaceAll('anthropic-bedrock', 'anthropic'))
  const upstreams = Object.keys(config['upstreams'] as Entry)
  const plain = { base_url: url, accounts: [{ name: 'a', key: 'upstream-key-1' }] }
  return { ...config, upstreams: Object.fromEntries(upstreams.map((name) => [name, plain])) }
}

for (const { name, file, models } of rows)
  test(`issue 50 every unexpired key of LiteLLM works unchanged after the import of ${name}`, async () => {
    const gateway = await startTestGateway({
      pollMs: 10,
      upstream: (url) => redirected(convertLitellm(parse(file), { today }).config as Entry, url),
    })
    const cwd = testFolder('cli')
    mkdirSync(cwd, { recursive: true })
    writeFileSync(join(cwd, 'l.yaml'), file)
    writeFileSync(join(cwd, 'dump.json'), JSON.stringify(dump))
    const words = ['import', 'litellm', 'l.yaml', '--keys', 'dump.json', '--store', gateway.storePath, '--credit', '50']
    const run = await runWarm([...words, '--output', 'triwire.yaml'], { cwd })
    assert.equal(run.code, 0, run.stderr)
    assert.match(run.stdout, /Brought in: 5 keys, 2 accounts, 1 people, 100 credits\./)
    assert.deepEqual(parse(readFileSync(join(cwd, 'triwire.yaml'), 'utf8')).labels, { team: ['Team-t2'] })
    await until(() => gateway.ledger.directory.hasForeignKeys === true)
    const persons = await runWarm(['person', 'list', '--json', '--store', gateway.storePath], { cwd })
    const [ada] = persons.json as unknown as Entry[]
    const { credits, per } = ada!['budget'] as Entry
    assert.deepEqual([ada!['name'], ada!['external_id'], credits, per], ['Ada', 'u-1', '30', 'month'])
    for (const key of secrets) {
      const answer = await ask(gateway.url, key, models[0]!)
      assert.equal(answer.status, 200, `${key}: ${await answer.text()}`)
    }
    assert.equal((await ask(gateway.url, 'sk-canary-expired', models[0]!)).status, 401)
  })

function ask(url: string, key: string, model: string): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  })
}

test('issue 50 import litellm --keys: a dry run and a refused run change nothing, and a second run adds nothing', async () => {
  const cwd = testFolder('cli')
  mkdirSync(cwd, { recursive: true })
  writeFileSync(join(cwd, 'l.yaml'), rows[0]!.file)
  writeFileSync(join(cwd, 'dump.json'), JSON.stringify(dump))
  writeFileSync(join(cwd, 'bad.json'), JSON.stringify({ keys: [...dump.keys, keyRow('sk-x', { expires: 'soon' })] }))
  const words = ['import', 'litellm', 'l.yaml', '--output', 'triwire.yaml', '--store', 's.db', '--keys']
  const files = () => readdirSync(cwd).sort()
  const dry = await runWarm([...words, 'dump.json', '--dry-run'], { cwd })
  assert.equal(dry.code, 0, dry.stderr)
  assert.match(dry.stdout, /5 keys of 2 accounts would be brought into \S+s\.db\.\nNothing was written: --dry-run\./)
  const bad = await runWarm([...words, 'bad.json'], { cwd })
  assert.match(bad.stderr, /^triwire: bad\.json: a key expires at "soon"/)
  assert.deepEqual(files(), ['bad.json', 'dump.json', 'l.yaml'])
  const first = await runWarm([...words, 'dump.json'], { cwd })
  assert.equal(first.code, 0, first.stderr)
  assert.match(first.stdout, /the account litellm has no credit, so its keys get 402/)
  assert.match(first.stdout, /Brought in: 5 keys, 2 accounts, 1 people, 40 credits\./)
  assert.doesNotMatch(first.stdout + first.stderr, /canary/)
  const again = await runWarm([...words, 'dump.json'], { cwd })
  assert.match(again.stderr, /triwire\.yaml is there already/)
  const forced = await runWarm([...words, 'dump.json', '--force'], { cwd })
  assert.match(forced.stdout, /Brought in: 0 keys, 0 accounts, 0 people, 0 credits; 5 were there already/)
  // The file that is replaced names the store, which has the keys: its successor names it too.
  writeFileSync(join(cwd, 'triwire.yaml'), `store: ./s.db\n${readFileSync(join(cwd, 'triwire.yaml'), 'utf8')}`)
  const named = words.filter((word) => word !== '--store' && word !== 's.db')
  const kept = await runWarm([...named, 'dump.json', '--force'], { cwd })
  assert.match(kept.stdout, /5 were there already[\s\S]*The store is \S+s\.db\./)
  assert.equal(parse(readFileSync(join(cwd, 'triwire.yaml'), 'utf8')).store, './s.db')
  // A link stays a link, and the server's group may still read what it could read.
  chmodSync(join(cwd, 'triwire.yaml'), 0o640)
  symlinkSync('triwire.yaml', join(cwd, 'link.yaml'))
  const linked = [...words, 'dump.json', '--force'].map((word) => (word === 'triwire.yaml' ? 'link.yaml' : word))
  assert.equal((await runWarm(linked, { cwd })).code, 0)
  assert.ok(lstatSync(join(cwd, 'link.yaml')).isSymbolicLink())
  assert.equal(statSync(join(cwd, 'triwire.yaml')).mode & 0o777, 0o640)
  assert.ok(!files().some((file) => file.endsWith('.import')))
  const report = await runWarm(['key', 'foreign', '--store', 's.db'], { cwd })
  assert.match(
    report.stdout,
    /5 keys of another gateway: 0 are rotated, revoked or expired, 5 are not; 0 of these were used here\./,
  )
  const [key] = (await runWarm(['key', 'foreign', '--store', 's.db', '--json'], { cwd })).json as unknown as Entry[]
  assert.equal(Math.round((Date.parse(`${key!['expires']}`) - Date.now()) / dayMs) <= 180, true)
  assert.equal((await runWarm(['key', 'rotate', `${key!['id']}`, '--store', 's.db'], { cwd })).code, 0)
  assert.match(
    (await runWarm(['key', 'foreign', '--store', 's.db'], { cwd })).stdout,
    /1 are rotated, revoked or expired, 4 are not/,
  )
  // A key that has expired works no more and cannot be rotated, so nothing is left to do about it.
  const [, second] = (await runWarm(['key', 'foreign', '--store', 's.db', '--json'], { cwd })).json
  assert.equal((await runWarm(['key', 'set', second!['id']!, '--expires', '1s', '--store', 's.db'], { cwd })).code, 0)
  await until(async () => {
    const { stdout } = await runWarm(['key', 'foreign', '--store', 's.db'], { cwd })
    return stdout.includes('2 are rotated, revoked or expired, 3 are not')
  }, 'the key expires')
  // A store that refuses keys keeps the configuration from being written.
  writeFileSync(join(cwd, 'no.db'), 'this is no store, and long enough to be read as one'.repeat(99))
  const refused = await runWarm(
    ['import', 'litellm', 'l.yaml', '--output', 'other.yaml', '--store', 'no.db', '--keys', 'dump.json'],
    { cwd },
  )
  assert.equal(refused.code, 1)
  assert.ok(!existsSync(join(cwd, 'other.yaml')) && !existsSync(join(cwd, 'other.yaml.import')))
})

test('issue 50 import litellm --keys brings keys into the store of the configuration that it replaces, in any folder', async () => {
  const cwd = testFolder('cli')
  mkdirSync(join(cwd, 'etc'), { recursive: true })
  writeFileSync(join(cwd, 'l.yaml'), rows[0]!.file)
  writeFileSync(join(cwd, 'dump.json'), JSON.stringify(dump))
  writeFileSync(join(cwd, 'etc', 'triwire.yaml'), 'store: ./s.db\n')
  const words = ['import', 'litellm', 'l.yaml', '--keys', 'dump.json', '--output', 'etc/triwire.yaml', '--force']
  const run = await runWarm(words, { cwd })
  assert.equal(run.code, 0, run.stderr)
  assert.match(run.stdout, /The store is \S+etc\/s\.db\./)
  assert.equal(parse(readFileSync(join(cwd, 'etc', 'triwire.yaml'), 'utf8')).store, './s.db')
  assert.ok(!existsSync(join(cwd, 'data')))
  const report = await runWarm(['key', 'foreign', '--json', '--config', 'etc/triwire.yaml'], { cwd })
  assert.equal((report.json as unknown as Entry[]).length, 5)
  // A file with a mistake does not say where the store is. Then nothing is written.
  writeFileSync(join(cwd, 'etc', 'triwire.yaml'), 'store: [\n')
  assert.equal((await runWarm(words, { cwd })).code, 1)
  assert.ok(!existsSync(join(cwd, 'etc', 'triwire.yaml.import')))
})

test('X12 a day of --until of an import begins in the reporting zone, and a key with an earlier end keeps it', async () => {
  const cwd = testFolder('cli')
  mkdirSync(cwd, { recursive: true })
  const own = new Date(Date.now() + dayMs).toISOString()
  writeFileSync(join(cwd, 'l.yaml'), rows[0]!.file)
  writeFileSync(join(cwd, 'dump.json'), JSON.stringify({ keys: [keyRow('sk-a'), keyRow('sk-b', { expires: own })] }))
  writeFileSync(join(cwd, 'triwire.yaml'), 'store: ./s.db\nreporting: { time_zone: Europe/Berlin }\n')
  const words = ['import', 'litellm', 'l.yaml', '--keys', 'dump.json', '--output', 'triwire.yaml', '--force']
  const wrong = await runWarm([...words, '--until', 'soon'], { cwd })
  assert.match(wrong.stderr, /--until Write a day like/)
  const over = await runWarm([...words, '--until', '2026-01-31'], { cwd })
  assert.match(over.stderr, /--until names a moment that is over/)
  const run = await runWarm([...words, '--until', '2097-07-01'], { cwd })
  assert.equal(run.code, 0, run.stderr)
  const { json } = await runWarm(['key', 'foreign', '--json', '--store', 's.db'], { cwd })
  assert.deepEqual(json.map(({ expires }) => expires).sort(), [own, '2097-06-30T22:00:00.000Z'].sort())
})
