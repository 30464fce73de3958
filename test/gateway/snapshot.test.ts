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

test('U14 a snapshot replaced by a reload retires with its last request, and not earlier', () => {
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

test('U14 a replaced snapshot without requests retires at once; the one in force never does', () => {
  const said: string[] = []
  const snapshots = createSnapshots(snapshotOf('a', said))
  snapshots.take().release()
  assert.deepEqual(said, [])
  snapshots.replace(snapshotOf('b', said))
  assert.deepEqual(said, ['a retires'])
})

test('U14 the end of the process cuts the snapshot in force and those with running requests, each once', async () => {
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

test('U14 a request that outlives the end of the process retires no snapshot that was already cut', async () => {
  const said: string[] = []
  const snapshots = createSnapshots(snapshotOf('a', said))
  const { release } = snapshots.take()
  snapshots.replace(snapshotOf('b', said))
  await snapshots.close()
  release()
  assert.deepEqual(said, ['a is cut', 'b is cut'])
})

test('U14 a retiring snapshot that still has a connection is also cut at the end', async () => {
  const said: string[] = []
  const lingering = snapshotOf('a', said)
  lingering.upstreams.retire = () => new Promise(() => {})
  const snapshots = createSnapshots(lingering)
  snapshots.replace(snapshotOf('b', said))
  await snapshots.close()
  assert.deepEqual(said, ['b is cut', 'a is cut'])
})
