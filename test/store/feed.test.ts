import assert from 'node:assert/strict'
import test from 'node:test'
import type { AccountRow } from '../../src/accounts/book-rows.ts'
import type { Changes } from '../../src/store/sqlite/accounts.ts'
import { createFeed } from '../../src/store/sqlite/feed.ts'

/** A connection to a store in which somebody else writes exactly then when the test says. */
function createSource() {
  const rows: AccountRow[] = []
  let dataVersion = 1n
  let between: (() => void) | undefined
  /** What is to happen behind the next call. */
  const calls: string[] = []
  const after = <T>(name: string, result: T): T => {
    calls.push(name)
    between?.()
    between = undefined
    return result
  }
  return {
    calls,
    write(name: string) {
      dataVersion++
      rows.push({ id: name, name, state: 'active', balanceNanos: 0n, createdMs: rows.length })
    },
    writeBehindNextCall(name: string) {
      between = () => this.write(name)
    },
    readDataVersion: () => after('version', dataVersion),
    readChanges: (revision: bigint) =>
      after('changes', {
        revision: BigInt(rows.length),
        accounts: rows.slice(Number(revision < 0n ? 0n : revision)),
        keys: [],
      }),
  }
}

function namesOf(changes: Changes | undefined): string[] {
  return (changes?.accounts ?? []).map(({ name }) => name)
}

test('F-C45 a change that comes between the two readings of a poll is not missed by the next', () => {
  const source = createSource()
  const feed = createFeed()
  source.write('one')
  source.writeBehindNextCall('two')
  const seen = [...namesOf(feed.read(source)), ...namesOf(feed.read(source))]
  assert.deepEqual(seen, ['one', 'two'])
  assert.equal(feed.read(source), undefined)
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
