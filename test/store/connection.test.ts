import assert from 'node:assert/strict'
import test from 'node:test'
import { Connection } from '../../src/store/sqlite/connection.ts'
import type { FileWatch } from '../../src/store/sqlite/file-watch.ts'
import type { Store } from '../../src/store/sqlite/store.ts'

/* What becomes of the server's connection to its store when something fails (B8, B15, X11). */

class Failure extends Error {
  readonly errcode: number | undefined

  constructor(errcode?: number, options?: ErrorOptions) {
    super(`code ${errcode}`, options)
    this.errcode = errcode
  }
}

const ioError = 10
const busy = 5

test('B8 the log is made durable once, when the store is opened; a write that works needs nothing more', () => {
  const { connection, calls, said } = connect()
  assert.deepEqual(calls, ['1 durable'])
  for (let i = 0; i < 2; i++)
    assert.equal(
      connection.write(({ name }) => calls.push(`${name} work`)),
      'done',
    )
  connection.makeDurable()
  assert.deepEqual(calls, ['1 durable', '1 work', '1 work'])
  connection.close()
  assert.deepEqual([calls.slice(3), said], [['1 close'], []])
})

test('B8 a start that cannot make the log durable leaves that to the first write, which does nothing before it', () => {
  const { connection, calls, fail } = connect({ fails: { durable: busy } })
  assert.deepEqual(calls, ['1 durable'])
  assert.throws(() => connection.makeDurable(), { errcode: busy })
  assert.equal(
    connection.write(() => calls.push('work')),
    'busy',
  )
  assert.deepEqual(calls, ['1 durable', '1 durable', '1 durable'])
  fail({})
  assert.equal(
    connection.write(() => calls.push('work')),
    'done',
  )
  assert.deepEqual(calls.slice(3), ['1 durable', 'work'])
})

test('B8 after a failed write the log is made durable, the connection closed, and the next connection is a new one', () => {
  const { connection, calls, said } = connect()
  calls.length = 0
  assert.equal(connection.write(failing(ioError)), 'failed')
  assert.deepEqual(calls.splice(0), ['looked at, 7 frames', '1 durable', '1 close'])
  assert.deepEqual(said, [{ type: 'trouble', message: 'code 10', code: ioError }])
  const seen: string[] = []
  assert.equal(
    connection.write(({ name }) => seen.push(name)),
    'done',
  )
  assert.deepEqual([calls.splice(0), seen], [['2 opened', 'noted'], ['2']])
  assert.equal(
    connection.write(() => {}),
    'done',
  )
  assert.deepEqual(calls, [])
})

test('B8 what a failing connection could not make durable becomes durable on the next one, before any write', () => {
  const { connection, calls, fail } = connect()
  calls.length = 0
  fail({ durable: ioError, close: ioError })
  assert.equal(connection.write(failing(ioError)), 'failed')
  assert.deepEqual(calls.splice(0), ['looked at, 7 frames', '1 durable', '1 close'])
  assert.equal(
    connection.write(() => calls.push('work')),
    'failed',
  )
  assert.deepEqual(calls.splice(0), ['2 opened', 'noted', '2 durable', 'looked at, 7 frames', '2 durable', '2 close'])
  fail({})
  // To read takes nothing of the kind.
  assert.equal(
    connection.read(() => calls.push('look')),
    'done',
  )
  assert.deepEqual(calls.splice(0), ['3 opened', 'noted', 'looked at, 7 frames', 'look'])
  assert.equal(
    connection.write(() => calls.push('work')),
    'done',
  )
  assert.deepEqual(calls, ['3 durable', 'work'])
})

test('B8 a closing connection tries once more to make its log durable, and closes in either case', () => {
  const { connection, calls } = connect({ fails: { durable: ioError, close: ioError } })
  connection.close()
  assert.deepEqual(calls, ['1 durable', '1 durable', '1 close'])
  connection.close()
  assert.equal(calls.length, 3)
})

test('F-S1 a store locked by another process stays open; its error code is reported, even as the cause of our own error', () => {
  const { connection, calls, said } = connect()
  calls.length = 0
  assert.equal(connection.write(failing(busy)), 'busy')
  const refused = (): never => {
    throw new Error('in our words', { cause: new Failure(busy) })
  }
  assert.equal(connection.write(refused), 'busy')
  assert.deepEqual(said, [
    { type: 'trouble', message: 'code 5', code: busy },
    { type: 'trouble', message: 'in our words', code: busy },
  ])
  assert.equal(
    connection.write(() => {}),
    'done',
  )
  assert.deepEqual(calls, [])
})

test('a store that cannot be reopened is tried again, with nothing to close', () => {
  const { connection, calls, fail, said } = connect()
  connection.write(failing(ioError))
  calls.length = 0
  fail({ open: 14 })
  for (let i = 0; i < 2; i++)
    assert.equal(
      connection.write(() => calls.push('work')),
      'failed',
    )
  assert.deepEqual(calls.splice(0), ['2 opened', '3 opened'])
  assert.deepEqual(said.at(-1), { type: 'trouble', message: 'code 14', code: 14 })
  fail({})
  assert.equal(
    connection.write(() => calls.push('work')),
    'done',
  )
  assert.deepEqual(calls, ['4 opened', 'noted', '4 durable', 'work'])
})

test('F-S5 X11 a lost store is reported once; its connection is neither used nor closed any more', () => {
  const { connection, calls, said, files } = connect()
  calls.length = 0
  files.lostStore = 'it is gone'
  const work = () => calls.push('work')
  assert.equal(connection.write(work), 'lost')
  // As if another look said otherwise: what is lost stays so.
  files.lostStore = undefined
  assert.deepEqual([connection.write(work), connection.read(work)], ['lost', 'lost'])
  connection.close()
  assert.deepEqual([calls, said], [[], [{ type: 'lost', message: 'it is gone' }]])
})

test('F-S5 X11 a file that is replaced while the store is reopened is not written to', () => {
  const { connection, calls, files } = connect()
  connection.write(failing(ioError))
  calls.length = 0
  files.onNote = () => {
    files.lostStore = 'another file'
  }
  assert.equal(
    connection.write(() => calls.push('work')),
    'lost',
  )
  assert.deepEqual(calls, ['2 opened', 'noted'])
})

test('B15 X11 all files are checked before each read; a lost log that is complete is merged into the file', () => {
  const { connection, calls, said, files } = connect()
  calls.length = 0
  const work = () => calls.push('work')
  assert.equal(connection.read(work), 'done')
  assert.deepEqual(calls.splice(0), ['looked at, 7 frames', 'work'])
  files.loss = 'the log is gone'
  assert.equal(connection.read(work), 'lost')
  assert.deepEqual(calls.splice(0), ['looked at, 7 frames', 'log of 7 frames', '1 checkpoint'])
  assert.deepEqual(said, [{ type: 'lost', message: 'the log is gone' }])
  assert.equal(connection.write(work), 'lost')
})

for (const [what, put] of [
  ['has no whole log', (files: Files) => (files.isWhole = false)],
  ['is gone itself', (files: Files) => (files.goneMeanwhile = 'gone')],
] as const) {
  test(`B15 X11 a store that ${what} gets nothing from its log`, () => {
    const { connection, calls, said, files } = connect()
    files.loss = 'a file is gone'
    put(files)
    assert.equal(
      connection.read(() => calls.push('work')),
      'lost',
    )
    assert.equal(calls.includes('1 checkpoint'), false)
    assert.deepEqual(said, [{ type: 'lost', message: 'a file is gone' }])
  })
}

test('B15 X11 a log that can no longer be merged changes nothing: the store is lost', () => {
  const { connection, said, files, fail } = connect()
  files.loss = 'the log is gone'
  fail({ checkpoint: ioError })
  assert.equal(
    connection.read(() => {}),
    'lost',
  )
  assert.deepEqual(said, [{ type: 'lost', message: 'the log is gone' }])
})

test('B8 B15 a connection that fails because a file is gone is not reopened: the remaining files are incomplete', () => {
  const { connection, calls, said, files } = connect()
  calls.length = 0
  files.loss = 'the log was cut'
  assert.equal(connection.write(failing(ioError)), 'lost')
  assert.deepEqual(calls, ['looked at, 7 frames', 'log of 7 frames', '1 checkpoint'])
  assert.deepEqual(
    said.map(({ type }) => type),
    ['trouble', 'lost'],
  )
})

test('B8 B15 files that cannot be checked after a failure do not count as lost: the store is reopened', () => {
  const { connection, calls, files } = connect()
  calls.length = 0
  files.lookFails = true
  assert.equal(connection.write(failing(ioError)), 'failed')
  assert.deepEqual(calls, ['1 durable', '1 close'])
})

type Calls = 'durable' | 'close' | 'open' | 'checkpoint'

/** A connection to stores that are counted and do nothing, what was asked of them, and what it said. */
function connect({ fails = {} }: { fails?: Partial<Record<Calls, number>> } = {}) {
  const calls: string[] = []
  const said: { type: string }[] = []
  const files = createFiles(calls)
  let opened = 0
  const create = () => {
    const name = `${++opened}`
    const call = (what: Calls) => () => {
      calls.push(`${name} ${what}`)
      if (fails[what] !== undefined) throw new Failure(fails[what])
    }
    return {
      name,
      makeDurable: call('durable'),
      checkpoint: call('checkpoint'),
      close: call('close'),
      countFrames: () => 7,
    } as unknown as Store
  }
  const connection = new Connection({
    store: create(),
    reopen: () => {
      const store = create()
      calls.push(`${opened} opened`)
      if (fails.open !== undefined) throw new Failure(fails.open)
      return store
    },
    files: files.watch,
    say: (message) => said.push(message),
  })
  return {
    connection: {
      write: (work: (store: { name: string }) => void) => connection.write((store) => work(store as never)),
      read: (work: () => void) => connection.read(work),
      makeDurable: () => connection.makeDurable(),
      close: () => connection.close(),
    },
    calls,
    said,
    files,
    fail: (others: typeof fails) => {
      fails = others
    },
  }
}

type Files = {
  lostStore: string | undefined
  loss: string | undefined
  isWhole: boolean
  lookFails: boolean
  /** The store's own file goes while all files are looked at. */
  goneMeanwhile: string | undefined
  onNote: () => void
  watch: FileWatch
}

function createFiles(calls: string[]): Files {
  const files: Files = {
    lostStore: undefined,
    loss: undefined,
    isWhole: true,
    lookFails: false,
    goneMeanwhile: undefined,
    onNote: () => {},
    watch: {
      note() {
        calls.push('noted')
        files.onNote()
      },
      findLostStore: () => files.lostStore,
      findLoss(countFrames) {
        if (files.lookFails) throw new Failure(ioError)
        calls.push(`looked at, ${countFrames()} frames`)
        files.lostStore = files.goneMeanwhile
        return files.loss
      },
      isLogWhole(countFrames) {
        calls.push(`log of ${countFrames()} frames`)
        return files.isWhole
      },
    },
  }
  return files
}

function failing(code: number): () => never {
  return () => {
    throw new Failure(code)
  }
}
