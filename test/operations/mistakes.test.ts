import assert from 'node:assert/strict'
import test from 'node:test'
import { StoreSilent } from '../../src/accounts/account.ts'
import type { Books } from '../../src/accounts/books.ts'
import { findAccountId, findPersonId } from '../../src/operations/filter.ts'
import { startApi } from './api.ts'

test('issue 13: each wrong field is reported by its name, with what is right', async () => {
  const { ask } = await startApi()
  const keys = '/accounts/tester/keys'
  const mistakes: [
    method: string,
    path: string,
    body: object | undefined,
    errors: [pointer: string, detail: RegExp][],
  ][] = [
    ['POST', '/accounts', { name: '' }, [['/name', /^An account name has 1 to 100 characters/]]],
    ['POST', '/accounts', { name: 'tester' }, [['/name', /^There is already an account named/]]],
    ['POST', '/accounts', { name: 5 }, [['/name', /^must be a text$/]]],
    ['POST', '/accounts', {}, [['/name', /^must be a text$/]]],
    [
      'POST',
      '/accounts',
      { name: 'a', foo: 1, 'b/r': 2 },
      [
        ['/foo', /^is not known here$/],
        ['/b~1r', /^is not known here$/],
      ],
    ],
    ['POST', keys, { label: '' }, [['/label', /^A label has 1 to 100 characters/]]],
    ['POST', keys, { expires: '2020-01-01' }, [['/expires', /^That moment is over/]]],
    ...[0, 1.5, 1_000_001].map((rpm): (typeof mistakes)[number] => [
      'POST',
      keys,
      { rpm },
      [['/rpm', /^must be a whole number from 1 to 1000000$/]],
    ]),
    ['POST', keys, { budget: { credits: '5/day' } }, [['/budget/credits', /^must be a text such as "12.5"$/]]],
    ['POST', '/operators', { name: 'x y', role: 'admin' }, [['/name', /^The name of an operator has/]]],
    ['POST', '/operators', { name: 'x', role: 'admin', expires: '0d' }, [['/expires', /^is over at once/]]],
    ['POST', '/operators', { name: 'x', role: 'king' }, [['/role', /^must be one of admin, viewer, finance$/]]],
    ['GET', '/accounts?q=', undefined, [['/q', /^must not be empty$/]]],
    [
      'GET',
      '/keys?account=nobody',
      undefined,
      [['/account', /^There is no account "nobody": see triwire account list$/]],
    ],
    ['GET', '/accounts?foo=1', undefined, [['/foo', /^is not known here$/]]],
  ]
  for (const [method, path, body, expected] of mistakes) {
    const told = await ask(method as 'GET', path, { body })
    const errors = told.body['errors'] as unknown as { pointer: string; detail: string }[]
    const what = `${method} ${path} ${JSON.stringify(told.body)}`
    assert.deepEqual(
      errors.map(({ pointer }) => pointer),
      expected.map(([pointer]) => pointer),
      what,
    )
    for (const [at, [, detail]] of expected.entries()) assert.match(errors[at]!.detail, detail, what)
  }
})

test('a filter reports that its account or person cannot be looked up now, and not that it does not exist', async () => {
  const silent = async () => {
    throw new StoreSilent('')
  }
  const books = { findAccount: silent, findPerson: silent } as unknown as Books
  await assert.rejects(findAccountId(books, 'acme'), StoreSilent)
  await assert.rejects(findPersonId(books, 'Ada'), StoreSilent)
})
