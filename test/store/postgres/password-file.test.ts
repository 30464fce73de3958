import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { StoreError } from '../../../src/store/files/store-error.ts'
import { readPassword } from '../../../src/store/postgres/password-file.ts'
import { testFolder } from '../../support/folder.ts'

const file = join(testFolder('pgpass'), 'pgpass')

function passwordOf(connection: Partial<Parameters<typeof readPassword>[0]> = {}) {
  process.env['PGPASSFILE'] = file
  return readPassword({ host: 'db', port: 5432, database: 'main', user: 'tri', ...connection })
}

test('X13 a password is read from the first line of the password file that fits the connection', () => {
  const text = [
    '# host:port:database:user:password',
    '',
    'db:5432:main',
    'other:*:*:*:of another host',
    String.raw`db:5432:main:tri:a:b\:c\\d`,
    'db:*:*:tri:of another database',
    String.raw`\:\:1:5432:*:*:of an address`,
  ].join('\r\n')
  writeFileSync(file, text, { mode: 0o600 })
  assert.equal(passwordOf(), String.raw`a:b:c\d`)
  assert.equal(passwordOf({ database: 'more', port: 5433 }), 'of another database')
  assert.equal(passwordOf({ host: '::1' }), 'of an address')
  assert.equal(passwordOf({ user: 'nobody' }), undefined)
})

test('X13 a password that other users can read is refused, and a file without one is not looked at', () => {
  writeFileSync(file, 'db:*:*:tri:secret\n')
  chmodSync(file, 0o644)
  assert.throws(
    () => passwordOf(),
    new StoreError(`${file} can be read by other users (mode 0644): run chmod 600 ${file}`),
  )
  assert.equal(passwordOf({ host: 'elsewhere' }), undefined)
})
