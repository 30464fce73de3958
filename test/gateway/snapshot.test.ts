import assert from 'node:assert/strict'
import test from 'node:test'
import { createSnapshots, type Snapshot } from '../../src/gateway/gateway.ts'
import { turn } from '../support/waiting.ts'

function snapshotOf(name: string, said: string[]): Snapshot {
  const upstreams = {
    send: () => assert.fail('nothing is sent'),
    retire: async () => void said.push(`${name} retires`),
    close: async () => void said.push(`${name} is cut`),
  }
  return { upstreams } as unknown as Snapshot
}

test('U14 a snapshot that a reload replaced retires with its last request, and not before', () => {
  const said: string[] = []
  const [a, b] = [snapshotOf('a', said), snapshotOf('b', said)]
  const snapshots = createSnapshots(a)
  const first = snapshots.take()
  const second = snapshots.take()
  snapshots.replace(b)
  assert.equal(first.snapshot, a)
  assert.equal(snapshots.current, b)
  assert.equal(snapshots.take().snapshot, b)
  first.release()
  assert.deepEqual(said, [])
  second.release()
  assert.deepEqual(said, ['a retires'])
})

test('U14 a snapshot that serves nobody retires at once; the one in force never does', () => {
  const said: string[] = []
  const snapshots = createSnapshots(snapshotOf('a', said))
  snapshots.take().release()
  assert.deepEqual(said, [])
  snapshots.replace(snapshotOf('b', said))
  assert.deepEqual(said, ['a retires'])
})

test('U14 the end of the process cuts what is in force and what still serves, and nothing twice', async () => {
  const said: string[] = []
  const snapshots = createSnapshots(snapshotOf('a', said))
  await turn()
  snapshots.replace(snapshotOf('b', said))
  await turn()
  snapshots.take()
  snapshots.replace(snapshotOf('c', said))
  await snapshots.close()
  assert.deepEqual(said, ['a retires', 'b is cut', 'c is cut'])
})

test('U14 a request that outlives the end of the process retires nothing that is cut already', async () => {
  const said: string[] = []
  const snapshots = createSnapshots(snapshotOf('a', said))
  const { release } = snapshots.take()
  snapshots.replace(snapshotOf('b', said))
  await snapshots.close()
  release()
  assert.deepEqual(said, ['a is cut', 'b is cut'])
})

test('U14 what retires and still has a connection is cut at the end too', async () => {
  const said: string[] = []
  const lingering = snapshotOf('a', said)
  lingering.upstreams.retire = () => new Promise(() => {})
  const snapshots = createSnapshots(lingering)
  snapshots.replace(snapshotOf('b', said))
  await snapshots.close()
  assert.deepEqual(said, ['b is cut', 'a is cut'])
})
