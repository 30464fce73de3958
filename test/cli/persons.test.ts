import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { createPath } from '../store/fixtures.ts'
import { run, runWarm } from './run.ts'

/** A store with the account `acme`, and a folder for lists. */
async function begin() {
  const path = createPath()
  const store = ['--store', path]
  await runWarm(['account', 'create', 'acme', ...store])
  const ask = (...args: string[]) => runWarm([...args, ...store])
  const json = async (...args: string[]) => (await runWarm([...args, ...store, '--json'])).json
  let count = 0
  const importList = (text: string | Buffer, ...more: string[]) => {
    const file = join(dirname(path), `list-${++count}.csv`)
    writeFileSync(file, text)
    return ask('person', 'import', file, ...more)
  }
  return { store, ask, json, importList }
}

test('Y21 a list of people can be imported repeatedly, and keys belong to them until they are erased', async () => {
  const { store, ask, json, importList } = await begin()
  const list = '\ufeffName, external_id,email,account\r\n"Hopper, Grace",u-1,grace@x,acme\r\n\r\n"Ada ""K""",u-2,,\r\n'
  const first = await importList(list)
  assert.deepEqual([first.code, first.stdout, first.stderr], [0, '2 created, 0 changed, 0 unchanged\n', ''])
  assert.equal((await importList(list)).stdout, '0 created, 0 changed, 2 unchanged\n')
  assert.deepEqual(JSON.parse((await importList(list, '--json')).stdout), { created: 0, changed: 0, unchanged: 2 })
  const listed = await json('person', 'list')
  const grace = listed.find(({ external_id }) => external_id === 'u-1')!
  assert.deepEqual(listed.map(({ name, email }) => [name, email]).sort(), [
    ['Ada "K"', null],
    ['Hopper, Grace', 'grace@x'],
  ])
  assert.match(grace['id']!, /^per_/)
  const { id } = await json('key', 'create', 'acme', '--person', 'Hopper, Grace')
  const shown = await json('key', 'show', id!)
  assert.deepEqual([shown['person'], shown['person_name']], [grace['id'], 'Hopper, Grace'])
  assert.match((await ask('key', 'list')).stdout, /person .*\n.*Hopper, Grace/)
  assert.equal((await json('key', 'list', '--person', 'u-1'))[0]!['id'], id)
  assert.deepEqual(await json('key', 'list', 'acme', '--person', 'u-2'), [])
  assert.match(
    (await ask('key', 'list', '--person', 'x')).stderr,
    /--person: There is no person "x": see triwire person/,
  )
  assert.equal((await json('key', 'set', id!, '--person', 'u-2'))['person_name'], 'Ada "K"')
  assert.equal((await json('key', 'set', id!, '--person', 'none'))['person'], null)
  await json('key', 'set', id!, '--person', 'u-2')
  assert.equal((await json('person', 'set', 'u-2', '--name', 'Ada King', '--email', 'A@X'))['email'], 'a@x')
  const made = await json('person', 'create', 'Ada Two')
  assert.match((await ask('person', 'show', 'Ada Two')).stdout, /name +Ada Two\nexternal_id +-\n/)
  assert.equal((await json('person', 'link', 'u-2', made['id']!))['name'], 'Ada King')
  const erased = await run(['person', 'erase', made['id']!, ...store])
  assert.match(erased.stdout, /^per_\w+ is erased: nothing but the id is left\n$/)
  assert.equal((await json('key', 'show', id!))['person'], null)
  assert.deepEqual(
    (await json('person', 'list')).map(({ name }) => name),
    ['Hopper, Grace'],
  )
  const audit = (await ask('audit')).stdout
  for (const operation of ['person.import', 'person.create', 'person.update', 'person.link', 'person.erase'])
    assert.match(audit, new RegExp(operation.replace('.', '\\.')))
  assert.doesNotMatch(audit, /Hopper|King|Ada/)
})

const head = 'name,external_id,email,account\n'

test('Y21 a list with a mistake is refused with the line and the cure, and nothing of it is imported', async () => {
  const { ask, json, importList } = await begin()
  const cases: readonly [string | Buffer, RegExp][] = [
    ['name,phone\nA,1\n', /line 1: no column is called "phone".*any of name, external_id, email, account/],
    ['name;email\nA;b@x\n', /no column is called "name;email".*with commas between them/],
    ['name,name\nA,B\n', /line 1: the column name is there twice/],
    ['', /the file is empty/],
    [`${head}A,1,a@x\n`, /line 2: has 3 cells, and the first line names 4 columns/],
    [`${head}"A,1,a@x,\n`, /line 2: a quote stands where none can, or is not closed/],
    [`${head}A"b,1,a@x,\n`, /line 2: a quote/],
    [`${head}"${'A,1,a@x,\n'.repeat(999_999)}`, /line 2: a quote stands where none can, or is not closed/],
    [`${head}"A\nB",1,,\nC,1,,\n`, /line 2: The name of a person has 1 to 100 characters/],
    [`${head}A\u200cB,1,,\n`, /line 2: The name of a person .*, all of which can be seen, /],
    [`${head}A,1,,\n\n\nC,1,,\n`, /line 5: It is of the same person as line 2/],
    [`${head}A,1,,\nB,2,,beta\n`, /line 3: There is no account "beta"/],
    [`${head}A,1,nobody,\n`, /line 2: An e-mail address is such as/],
    [Buffer.from([...Buffer.from(`${head}A`), 0xff]), /is not UTF-8: save it as UTF-8/],
    [`name\n${'A\n'.repeat(10_001)}`, /a list has 10000 people at most/],
  ]
  for (const [text, message] of cases) {
    const refused = await importList(text)
    assert.notEqual(refused.code, 0, String(message))
    assert.match(refused.stderr, message)
    assert.equal((await json('person', 'list')).length, 0)
  }
  assert.match((await ask('person', 'import', 'missing.csv')).stderr, /missing\.csv cannot be read \(ENOENT\)/)
  assert.match((await ask('person', 'set', 'nobody')).stderr, /say what is to be changed/)
  assert.match(
    (await ask('key', 'create', 'acme', '--person', 'nobody')).stderr,
    /There is no person "nobody": see triwire person list/,
  )
})

test('Y20 limits of a person are set, listed, imported from a list, shown with their keys, and removed', async () => {
  const { ask, json, importList } = await begin()
  const bounded = ['--account', 'acme', '--budget', '50/month', '--rpm', '60']
  const { id } = await json('person', 'create', 'Ada', ...bounded)
  const shown = (await json('person', 'show', 'Ada')) as Record<string, unknown>
  const { credits, per, spent, held } = shown['budget'] as Record<string, string>
  assert.deepEqual([credits, per, spent, held, shown['rpm']], ['50', 'month', '0', '0', 60])
  for (const command of ['show', 'sign-out'])
    assert.match((await ask('person', command, id!)).stdout, /budget +50\/month\n.*spent +0\n/s, command)
  const { id: keyId } = await json('key', 'create', 'acme', '--person', id!)
  const key = (await json('key', 'show', keyId!)) as Record<string, unknown>
  assert.deepEqual(
    [(key['person_budget'] as typeof key)['credits'], key['person_rpm'], key['budget']],
    ['50', 60, null],
  )
  assert.match((await ask('key', 'show', keyId!)).stdout, /person_budget +50\/month\n/)
  const list = 'name,account,budget,rpm\nAda,,none,\nBo,acme,5/day,7\nCy,,,\n'
  assert.equal((await importList(list)).stdout, '2 created, 1 changed, 0 unchanged\n')
  assert.equal((await importList(list)).stdout, '0 created, 0 changed, 3 unchanged\n')
  const rows = (await ask('person', 'list')).stdout.split('\n').map((line) => line.split(/ +/))
  const columns = rows[0]!.map((name, at) => [name, at] as const)
  const of = (name: string, row: readonly string[]) => row[columns.find(([column]) => column === name)![1]]
  const told = rows.slice(1, 4).map((row) => ['name', 'budget', 'rpm'].map((name) => of(name, row)).join(' '))
  assert.deepEqual(told.sort(), ['Ada - 60', 'Bo 5/day 7', 'Cy - -'])
  const refusals: readonly [Promise<{ code: number | null; stderr: string }>, RegExp][] = [
    [
      ask('person', 'set', 'Bo', '--account', 'none'),
      /with a budget or a limit of requests is of one account: name that/,
    ],
    [ask('person', 'set', 'Cy', '--budget', '5'), /is of one account: name that too/],
    [ask('person', 'set', 'Bo', '--budget', '0'), /A budget is more than 0 credits/],
    [ask('person', 'set', 'Bo', '--rpm', '0'), /--rpm/],
    [importList('name,budget\nDi,5/day\n'), /line 2: A person with a budget .* is of one account/],
    [importList('name,account,budget\nDi,acme,much\n'), /line 2: budget /],
    [importList('name,account,rpm\nDi,acme,1e3\n'), /line 2: rpm /],
  ]
  for (const [asked, message] of refusals) {
    const { code, stderr } = await asked
    assert.notEqual(code, 0, String(message))
    assert.match(stderr, message)
  }
  assert.equal((await json('person', 'set', 'Ada', '--rpm', 'none'))['rpm'], null)
})

test('Y21 a key may have the labels and selectable dimensions that the configuration declares, and no others', async () => {
  const { ask, json } = await begin()
  const folder = dirname(createPath())
  const config = join(folder, 'labels.yaml')
  writeFileSync(config, 'labels: { project: [apollo, gemini], team: [red] }')
  const labels = ['--labels', 'team=red,project=apollo', '--may-choose', 'project', '--config', config]
  const { id } = await json('key', 'create', 'acme', ...labels)
  const shown = (await json('key', 'show', id!)) as Record<string, unknown>
  assert.deepEqual([shown['labels'], shown['may_choose']], [{ project: 'apollo', team: 'red' }, ['project']])
  assert.match((await ask('key', 'list')).stdout, /labels .*may_choose .*\n.*project=apollo,team=red +project /)
  const set = async (...args: string[]) => json('key', 'set', id!, ...args, '--config', config)
  assert.deepEqual((await set('--labels', 'project=gemini'))['labels'], { project: 'gemini' })
  assert.equal((await set('--labels', 'none', '--may-choose', 'none'))['labels'], null)
  const wrong: readonly [string, string, RegExp][] = [
    [
      '--labels',
      'project=venus',
      /--labels: "venus" is no value of project: declare it in the configuration, under labels/,
    ],
    ['--labels', 'place=x', /There is no dimension "place"/],
    ['--labels', 'project', /such as project=apollo,team=red/],
    ['--labels', 'project=apollo,project=gemini', /one label in each dimension/],
    ['--labels', 'a=1,b=1,c=1,d=1,e=1', /4 labels at most/],
    ['--may-choose', 'place', /--may-choose: There is no dimension "place"/],
  ]
  for (const [flag, text, message] of wrong) {
    const told = await ask('key', 'set', id!, flag, text, '--config', config)
    assert.notEqual(told.code, 0)
    assert.match(told.stderr, message)
  }
  const audit = (await ask('audit', '--operation', 'key.update')).stdout
  assert.match(audit, /project=gemini/)
})
