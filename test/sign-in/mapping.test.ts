import assert from 'node:assert/strict'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { createBooks } from '../../src/accounts/books.ts'
import { loadText } from '../../src/config/load.ts'
import { mapPerson, type PersonFacts } from '../../src/sign-in/mapping.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { run, runWarm } from '../cli/run.ts'
import { testFolder } from '../support/folder.ts'

const signIn = {
  issuer: 'https://login.example',
  client_id: 'triwire',
  rules: [
    { groups: ['platform'], role: 'admin' },
    {
      groups: ['/leads', 'heads'],
      email_domains: ['corp.test'],
      account: 'acme',
      role: 'lead',
      models: 'large,small-*',
    },
    { groups: ['developers'], account: 'acme', budget: '50/month', requests_per_minute: 60 },
    { email_domains: ['Partner.test', 'guest.test'], account: 'guests' },
  ],
}
const file = JSON.stringify({ api_url: 'https://llm.example', sign_in: signIn })
const { rules } = loadText(file, 'a file', {}, {}).signIn!

const noGroups: readonly string[] = []

/** Facts, and the number of the rule or the reason why there is none. */
const cases: readonly (readonly [PersonFacts['groups'], string | undefined, number | string])[] = [
  [['platform'], undefined, 1],
  [['developers', 'platform'], 'x@corp.test', 1],
  [['developers'], undefined, 3],
  [['/developers'], undefined, 3],
  [['leads'], 'x@corp.test', 2],
  [['/leads'], 'X@CORP.TEST', 2],
  [['heads'], 'x@corp.test', 2],
  [['leads'], 'x@sub.corp.test', 'no_rule'],
  [['leads'], 'x@notcorp.test', 'no_rule'],
  [['leads'], 'x@corp.test@evil.test', 'no_rule'],
  [['leads'], undefined, 'no_rule'],
  [['leads', 'developers'], undefined, 3],
  [['Developers'], undefined, 'no_rule'],
  [['developer'], undefined, 'no_rule'],
  [['developers '], undefined, 'no_rule'],
  [['//developers'], undefined, 'no_rule'],
  [['org/developers'], undefined, 'no_rule'],
  [noGroups, 'x@partner.test', 4],
  [noGroups, 'x@GUEST.test', 4],
  [noGroups, 'partner.test', 'no_rule'],
  [noGroups, 'x@partner.test.evil', 'no_rule'],
  [noGroups, undefined, 'no_rule'],
  [noGroups, '', 'no_rule'],
  // The first rule would need the list.
  ['too_many', 'x@partner.test', 'too_many_groups'],
  ['too_many', undefined, 'too_many_groups'],
]

test('issue 47 the first rule that fits decides; groups and domains are compared as a whole', () => {
  for (const [groups, email, expected] of cases) {
    const found = mapPerson(rules, { groups, email })
    assert.equal('rule' in found ? found.number : found.why, expected, JSON.stringify([groups, email]))
    if ('rule' in found) assert.equal(found.rule, rules[found.number - 1])
  }
})

test('issue 47 a missing list of groups matters only to rules with groups', () => {
  const found = mapPerson([rules[3]!, rules[2]!], { groups: 'too_many', email: 'x@guest.test' })
  assert.equal('number' in found && found.number, 1)
})

test('issue 47 a refusal names the claims that were sent, so that the person can ask their administrator', () => {
  const found = mapPerson(rules, { groups: ['sales', '/emea'], email: 'x@corp.test' })
  assert.match('text' in found ? found.text : '', /these groups: sales, \/emea, and the address x@corp\.test/)
  const bare = mapPerson(rules, { groups: [], email: undefined })
  assert.match('text' in bare ? bare.text : '', /no groups, and no verified e-mail address/)
})

test('issue 47 `sign-in explain` shows which rule a person would get', async () => {
  const cwd = testFolder('explain')
  writeFileSync(join(cwd, 'triwire.yaml'), file)
  const explain = (...args: string[]) => runWarm(['sign-in', 'explain', ...args], { cwd })
  const asJson = async (...args: string[]) => (await explain(...args, '--json')).json
  assert.deepEqual(await asJson('--groups', 'x, developers'), {
    ...{ rule: 3, rules: 4, account: 'acme', role: 'member' },
    ...{ models: null, budget: '50/month', requests_per_minute: 60 },
  })
  assert.deepEqual(await asJson('--groups', 'leads', '--email', 'x@corp.test'), {
    ...{ rule: 2, rules: 4, account: 'acme', role: 'lead' },
    ...{ models: ['large', 'small-*'], budget: null, requests_per_minute: null },
  })
  const refused = await explain('--email', 'x@corp.test', '--json')
  assert.deepEqual([refused.code, JSON.parse(refused.stdout).rule], [1, null])
  const bare = await explain()
  assert.deepEqual([bare.code, bare.stdout], [1, 'none of 4 rules fits: the sign-in is refused\n'])
  const told = await run(['sign-in', 'explain', '--groups', 'platform'], { cwd })
  assert.deepEqual([told.code, told.stderr], [0, ''])
  assert.match(told.stdout, /rule +1 of 4\naccount +none: the console only\nrole +admin\n/)
  const none = await runWarm(['sign-in', 'explain'], { cwd: testFolder('none') })
  assert.deepEqual([none.code, /has no sign_in/.test(none.stderr)], [2, true])
})

test('issue 45 `check` and `sign-in explain` name accounts of rules that the store lacks, and never make a store', async () => {
  const cwd = testFolder('accounts')
  const path = join(cwd, 'triwire.db')
  const of = (account: string) => ({ groups: [account], account })
  const sign_in = { ...signIn, rules: [{ groups: ['platform'], role: 'admin' }, ...['acme', "gone's team"].map(of)] }
  writeFileSync(join(cwd, 'triwire.yaml'), JSON.stringify({ api_url: 'https://llm.example', sign_in, store: path }))
  const env = { SECRET: 'x' }
  const explain = (group: string) => runWarm(['sign-in', 'explain', '--groups', group, '--json'], { cwd, env })
  const check = async () => {
    const { warnings } = (await runWarm(['check', '--json'], { cwd, env })).json as unknown as {
      warnings: { path: string; message: string }[]
    }
    return warnings.filter((one) => one.path.startsWith('sign_in.rules'))
  }
  const message =
    "There is no account gone's team, so the people of this rule cannot sign in: run triwire account create 'gone'\\''s team', or name another account in the rule."
  for (const group of ['acme', "gone's team", 'platform']) assert.equal((await explain(group)).stderr, '')
  assert.deepEqual(await check(), [])
  assert.ok(!existsSync(path), 'nothing is known of a store that does not exist yet')
  const store = openStore(path)
  const acme = await createBooks(store, Date.now).createAccount('acme')
  store.close()
  const before = readdirSync(cwd)
  assert.deepEqual(await check(), [{ path: 'sign_in.rules[2].account', message }])
  const found = { acme: '', "gone's team": `${JSON.stringify({ note: message })}\n`, platform: '' }
  for (const [group, stderr] of Object.entries(found)) assert.equal((await explain(group)).stderr, stderr)
  assert.deepEqual(readdirSync(cwd), before)
  // A rule may name the id of an account too.
  const byId = { ...signIn, rules: [{ groups: ['dev'], account: acme.id }] }
  writeFileSync(
    join(cwd, 'triwire.yaml'),
    JSON.stringify({ api_url: 'https://llm.example', sign_in: byId, store: path }),
  )
  assert.deepEqual(await check(), [])
})
