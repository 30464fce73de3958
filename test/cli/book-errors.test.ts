import assert from 'node:assert/strict'
import test from 'node:test'
import { BookError, type BookErrorCode } from '../../src/accounts/book-error.ts'
import { explainBookError } from '../../src/cli/store.ts'
import { createPath } from '../store/fixtures.ts'
import { openStore } from '../support/operator.ts'
import { runWarm } from './run.ts'

test('each rule of the books is reported at the command line in a sentence with its cure', () => {
  const told: [code: BookErrorCode, subject: string, sentence: string][] = [
    [
      'name_invalid',
      ' a',
      'An account name has 1 to 100 characters, all of which can be seen, no blanks around, not the form of an id, and no key in it',
    ],
    ['name_taken', 'one', 'There is already an account named "one": choose another name'],
    ['no_account', 'two', 'There is no account "two": see triwire account list'],
    ['no_key', 'key_x', 'There is no key "key_x": see triwire key list'],
    ['key_ambiguous', 'sk-tri-1', 'Several keys begin with sk-tri-1: name one by its id, see triwire key list'],
    ['key_revoked', 'key_1', 'Key key_1 is revoked: make a new one with triwire key create'],
    ['key_expired', 'key_1', 'Key key_1 has ended: give it another end with triwire key set, or make a new one'],
    [
      'key_rotated',
      'key_1',
      "Key key_1 was rotated, or is a person's own that was given a sooner end, and lives no longer: give another end to the key that followed it, or have a new one made",
    ],
    ['label_invalid', 'acct_1', 'A label has 1 to 100 characters, all of which can be seen, and no blanks around'],
    ['label_secret', 'acct_1', 'A label is not secret: it must not hold a key'],
    ['reference_missing', ' ', 'A credit needs a reference: the number of its payment, or why it is given'],
    [
      'reference_invalid',
      'x',
      'A reference has 1 to 500 characters, all of which can be seen, and no blanks around: choose another one',
    ],
    [
      'reference_reserved',
      'return:1',
      'References that begin with "return:", "grant:" or "lapse:" are the ledger\'s own: choose another one',
    ],
    ['reference_conflict', 'i 1', 'Reference "i 1" was used for another account or amount: choose another one'],
    ['overflow', 'acct_1', 'The account cannot hold so much: credit a smaller amount'],
    [
      'clock_doubtful',
      '2028-11-21T12:00:00.000Z',
      'The clock that dates entries shows 2028-11-21T12:00:00.000Z, which is in doubt: set the clock right, or confirm that time with triwire clock confirm',
    ],
    [
      'servers_run',
      'a (1), b (2)',
      'Servers count by the days of the zone that is recorded: a (1), b (2): stop all of them first; one that was killed is forgotten after half a minute',
    ],
  ]
  for (const [code, subject, sentence] of told) {
    const error = explainBookError(new BookError(code, subject))
    assert.ok(error instanceof Error)
    assert.equal(error.message, sentence)
  }
})

test('an error that is not a rule of the books is reported unchanged', () => {
  const error = new Error('the disk is full')
  assert.equal(explainBookError(error), error)
})

test('a refusal of the books is one line on stderr and exit code 1', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  store.createAccount('one')
  const { id } = store.createKey('one')
  store.revokeKey(id)
  const asked = await Promise.all(
    [
      ['account', 'create', 'one'],
      ['account', 'show', 'two'],
      ['key', 'list', 'two'],
      ['key', 'rotate', id],
    ].map((args) => runWarm([...args, '--store', path])),
  )
  assert.deepEqual(
    asked.map(({ code, stdout, stderr }) => [code, stdout, stderr]),
    [
      [1, '', 'triwire: There is already an account named "one": choose another name\n'],
      [1, '', 'triwire: There is no account "two": see triwire account list\n'],
      [1, '', 'triwire: There is no account "two": see triwire account list\n'],
      [1, '', `triwire: Key ${id} is revoked: make a new one with triwire key create\n`],
    ],
  )
})
