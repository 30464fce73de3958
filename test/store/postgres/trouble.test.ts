import assert from 'node:assert/strict'
import test from 'node:test'
import { BookError } from '../../../src/accounts/book-error.ts'
import { StoreError } from '../../../src/store/files/store-error.ts'
import type { Database } from '../../../src/store/postgres/database.ts'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import { explainDatabase, isUnknown, refusalOf } from '../../../src/store/postgres/trouble.ts'
import type { Row } from '../../../src/store/sql/step.ts'

/* What failures of the database are taken for. No database is asked. */

test('C13 a database server that ends itself over a full or broken disk may have stored an unconfirmed commit', () => {
  const answered = (severity: string, code: string) => isUnknown({ severity, code, message: 'as it says' })
  for (const code of ['53100', '58030', 'XX000', '57P01', '57P02', '08006']) assert.equal(answered('PANIC', code), true)
  for (const code of ['40P01', '55P03', '57014', '23505', '22003']) assert.equal(answered('ERROR', code), false)
  assert.equal(isUnknown(new Error('Query read timeout')), true)
  assert.equal(isUnknown(new Error('timeout exceeded when trying to connect')), false)
  assert.equal(isUnknown(Object.assign(new Error('refused'), { syscall: 'connect', code: 'ECONNREFUSED' })), false)
})

/** A server that answers what it is asked about itself. */
function serverOf(row: Row): Database {
  const refuse = () => assert.fail('nothing is made there')
  return { query: async () => [row], transact: refuse, onConnect: refuse, close: async () => {} }
}

test('a server that is too old, has another encoding, or is behind a pooler is refused with what to use', async () => {
  const right = { number: 150_018, version: '15.18', encoding: 'UTF8', heard: 'on' }
  const refused = (row: Partial<typeof right> | { heard: null }, words: RegExp) =>
    assert.rejects(migrate(serverOf({ ...right, ...row }), 'postgres://h/x', []), (error: Error) => {
      assert.ok(error instanceof StoreError)
      assert.match(error.message, words)
      return true
    })
  await refused(
    { number: 130_014, version: '13.14' },
    /^postgres:\/\/h\/x is PostgreSQL 13.14: use version 14 or later/,
  )
  await refused({ encoding: 'SQL_ASCII' }, /^postgres:\/\/h\/x stores text in SQL_ASCII: use a database made with/)
  // PgBouncer answers so if it is configured to ignore unknown parameters.
  await refused({ heard: null }, /^postgres:\/\/h\/x is a pooler's address: name PostgreSQL itself/)
})

test('a faulty URL is reported with its cure', () => {
  const told = (error: object) => (explainDatabase(error, 'postgres://h/x') as Error).message
  assert.match(
    refusalOf({ code: '08P01', message: 'unsupported startup parameter: options' }, 'postgres://h/x')!.message,
    /is a pooler's address/,
  )
  const demanded = 'no pg_hba.conf entry for host "::1", user "u", database "x", no encryption'
  assert.match(told({ code: '28000', message: demanded }), /perhaps only with TLS: sslmode\) \(no pg_hba.conf entry/)
  assert.match(
    told({ code: 'ENOTFOUND', message: 'getaddrinfo ENOTFOUND h' }),
    /cannot be reached: there is no such host/,
  )
  assert.match(
    told({ code: '25006', message: 'cannot execute CREATE SCHEMA' }),
    /it is a read-only standby: name the server that/,
  )
  assert.match(told({ code: '55P03', message: 'lock timeout' }), /another transaction holds the lock/)
  assert.match(
    told({ code: '57014', message: 'canceling statement due to statement timeout' }),
    /a statement took too long: .* try again/,
  )
})

test('a rule that a change breaks is reported as such, whatever the names in it', () => {
  for (const name of ['kessler', 'TLS team', 'certificates']) {
    const error = new BookError('name_taken', name)
    assert.equal(explainDatabase(error, 'postgres://h/x'), error)
  }
})

test('X13 a password that is required and missing is reported with where to put it', () => {
  for (const message of [
    'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string',
    'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a non-empty string',
  ])
    assert.match(
      refusalOf(new Error(message), 'postgres://h/x')!.message,
      /^postgres:\/\/h\/x asks for a password: set PGPASSWORD/,
    )
})

test('a certificate that cannot be read is reported as a fault of the URL, and not as a missing socket', () => {
  const refusal = (error: object) => refusalOf(error, 'postgres://h/x')?.message
  const missing = { code: 'ENOENT', syscall: 'open', message: "ENOENT: no such file or directory, open '/ca.pem'" }
  const cure = "check sslrootcert, sslcert and sslkey in the store's URL"
  const folder = { code: 'EISDIR', syscall: 'read', message: 'EISDIR: illegal operation on a directory, read' }
  for (const error of [missing, folder])
    assert.equal(refusal(error), `postgres://h/x names a file that cannot be read (${error.message}): ${cure}`)
  for (const [code, syscall] of [
    ['ENOENT', 'connect'],
    ['ECONNRESET', 'read'],
  ])
    assert.equal(refusal({ code, syscall, message: `${syscall} ${code}` }), undefined)
})
