import assert from 'node:assert/strict'
import test from 'node:test'
import { type AccountRow, newAccount } from '../../src/accounts/book-rows.ts'
import { type Changes, createFeed } from '../../src/store/sqlite/accounts.ts'

/** A connection to a store in which somebody else writes exactly then when the test says. */
function createSource() {
  const rows: AccountRow[] = []
  let dataVersion = 1n
  const calls: string[] = []
  let writeBehind = { call: 0, name: '' }
  const after = <T>(call: string, result: T): T => {
    calls.push(call)
    if (calls.length === writeBehind.call) source.write(writeBehind.name)
    return result
  }
  const source = {
    calls,
    write(name: string) {
      dataVersion++
      rows.push(newAccount(name, name, rows.length))
    },
    writeBehindCall(call: number, name: string) {
      writeBehind = { call, name }
    },
    readDataVersion: () => after('version', dataVersion),
    readChanges: (revision: bigint) =>
      after('changes', {
        revision: BigInt(rows.length),
        accounts: rows.slice(Number(revision < 0n ? 0n : revision)),
        keys: [],
        hasForeignKeys: false,
      }),
  }
  return source
}

function namesOf(changes: Changes | undefined): string[] {
  return (changes?.accounts ?? []).map(({ name }) => name)
}

test('F-C45 a change between any two readings of a poll is not missed by the next', () => {
  for (const call of [1, 2, 3]) {
    const source = createSource()
    const feed = createFeed()
    source.write('one')
    source.writeBehindCall(call, 'two')
    const seen = [feed.read(source), feed.read(source), feed.read(source)].flatMap(namesOf)
    assert.deepEqual(seen, ['one', 'two'], `behind call ${call}`)
    assert.equal(feed.read(source), undefined)
  }
})

test('F-C45 a poll of a store in which nobody has written asks for its version and for nothing else', () => {
  const source = createSource()
  const feed = createFeed()
  feed.read(source)
  source.calls.length = 0
  feed.read(source)
  assert.deepEqual(source.calls, ['version'])
})

test('F-S3 F-C45 a connection that was opened anew is read, whatever its version says: the number is its own', () => {
  const source = createSource()
  const feed = createFeed()
  feed.read(source)
  source.write('one')
  const reopened = { ...source, readDataVersion: () => 1n }
  assert.deepEqual(namesOf(feed.read(reopened)), ['one'])
  assert.equal(feed.read(reopened), undefined)
})
