import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { type KeyRenewal, Secret, type UpstreamAccount } from '../../src/config/config.ts'
import { createKeyring, fixedKey } from '../../src/upstream/keyring.ts'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'
import { upstreamAt } from '../support/upstream.ts'
import { turn, until } from '../support/waiting.ts'

/* Keys that change while the process runs (N-F3). Time is the test's; files and processes are real. */

const sh = (script: string, lifetimeMs = 60_000): KeyRenewal => ({ command: ['/bin/sh', '-c', script], lifetimeMs })

function start() {
  let nowMs = 0
  const told: string[] = []
  const keyring = createKeyring(
    () => nowMs,
    (level, event, fields) => void told.push(`${level} ${event} ${JSON.stringify(fields)}`),
  )
  atEnd(keyring.close)
  const account = (renewal: KeyRenewal, key = ''): UpstreamAccount => ({
    name: 'a',
    key: new Secret(key),
    renewal,
    isEnabled: true,
  })
  const upstream = (...accounts: UpstreamAccount[]) => [upstreamAt('http://far', { name: 'far', accounts })]
  return {
    told,
    keyring,
    account,
    upstream,
    /** Puts these in force, and begins with them. */
    use: (...accounts: UpstreamAccount[]) => {
      keyring.adopt(upstream(...accounts))
      return keyring.prepare(upstream(...accounts))
    },
    pass(ms: number) {
      nowMs += ms
      keyring.tick()
    },
  }
}

const failed = (why: string, in_use: boolean) => `error key_failed ${JSON.stringify({ account: 'far/a', why, in_use })}`
const renewed = 'info key_renewed {"account":"far/a"}'

test('a key of the configuration never changes, and one of a disabled account is not known', () => {
  const key = fixedKey({ name: 'a', key: new Secret('k-1'), isEnabled: true })
  key.doubt(true)
  assert.deepEqual([key.value, key.version, key.known], ['k-1', 0, ['k-1']])
  const { keyring, account } = start()
  const off = keyring.keyOf({ ...account(sh('echo k-2')), isEnabled: false })
  keyring.tick()
  assert.deepEqual([off.value, off.known], [undefined, []])
})

test('N-F3 a key file is read again when it changes; while it is unreadable or empty, the previous key is used', async () => {
  const { keyring, account, use, pass, told } = start()
  const file = join(testFolder('keys'), 'key')
  writeFileSync(file, 'key-one\n')
  const one = account({ file }, 'key-one')
  await use(one)
  const key = keyring.keyOf(one)
  assert.deepEqual([key.value, key.version], ['key-one', 1])
  const becomes = async (value: string, said?: string) => {
    await until(() => {
      pass(1_000)
      return key.value === value && (said === undefined || told.at(-1) === said)
    })
  }
  writeFileSync(file, '  key-two \n')
  await becomes('key-two', renewed)
  assert.deepEqual(key.known, ['key-two', 'key-one'])
  writeFileSync(`${file}.next`, 'key-three')
  renameSync(`${file}.next`, file)
  await becomes('key-three', renewed)
  rmSync(file)
  await becomes('key-three', failed('ENOENT', true))
  writeFileSync(file, '')
  await becomes('key-three', failed('holds no key: it is empty', true))
  writeFileSync(file, 'key four')
  await becomes('key-three', failed('must hold one key and nothing else: a single word', true))
  // Of another length: a file system may give two writes of one moment the same times.
  writeFileSync(file, 'the-key-five')
  await becomes('the-key-five', renewed)
  assert.equal(told.length, 6, 'trouble is told once')
  assert.doesNotMatch(told.join(), /key-|key four/)
})

test('N-F3 a command whose child process keeps its output open has delivered its key, and the child is ended', async () => {
  const { keyring, account, use, told } = start()
  const left = join(testFolder('keys'), 'left')
  const one = account(sh(`sleep 1000 & echo $! > '${left}'; echo key-told`))
  await use(one)
  assert.equal(keyring.keyOf(one).value, 'key-told')
  await until(() => !isAlive(Number(readFileSync(left, 'utf8'))), 'it is ended')
  assert.deepEqual(told, [])
})

test('U14 a reload uses a newly read key file at once, and an older configuration does not restore the previous key', async () => {
  const { keyring, account, use } = start()
  const file = join(testFolder('keys'), 'key')
  writeFileSync(file, 'key-two')
  await use(account({ file }, 'key-one'))
  const key = keyring.keyOf(account({ file }, 'key-one'))
  await use(account({ file }, 'key-two'))
  assert.equal(keyring.keyOf(account({ file }, 'key-one')), key)
  assert.deepEqual([key.value, key.known], ['key-two', ['key-two', 'key-one']])
})

test('X10 after a rejected reload, the configuration in force keeps the current key, and not the one it first had', async () => {
  const { keyring, account, upstream, use, told } = start()
  const file = join(testFolder('keys'), 'key')
  writeFileSync(file, 'key-two')
  const inForce = account({ file }, 'key-one')
  await use(inForce)
  await use(account({ file }, 'key-two'))
  const key = keyring.keyOf(inForce)
  rmSync(file)
  keyring.keep(upstream(inForce))
  assert.deepEqual([key.value, key.version, told.length], ['key-two', 2, 1])
})

test('U14 N-F3 a changed lifetime does not change the key, which is used for its new lifetime', async () => {
  const { keyring, account, use, pass } = start()
  const { script, runs } = counting('echo token')
  await use(account(sh(script)))
  const key = keyring.keyOf(account(sh(script)))
  await use(account(sh(script, 30_000)))
  assert.equal(keyring.keyOf(account(sh(script, 30_000))), key)
  assert.deepEqual([key.value, runs()], ['token', 1])
  pass(29_999)
  assert.equal(runs(), 1)
  pass(1)
  await until(() => runs() === 2)
})

/** A script that counts its runs, and what it prints. */
function counting(rest: string) {
  const runs = join(testFolder('keys'), 'runs')
  return {
    script: `echo x >> ${runs}; ${rest}`,
    runs: () => (existsSync(runs) ? readFileSync(runs, 'utf8').length / 2 : 0),
  }
}

test('N-F3 a command runs at the start and when its key’s lifetime is over, once for all accounts that name it', async () => {
  const { keyring, account, use, pass } = start()
  const { script, runs } = counting('echo "  token-$(wc -l < RUNS)  "')
  const whole = script.replace('RUNS', /\S+runs/.exec(script)![0].replace(/;$/, ''))
  const one = account(sh(whole))
  await use(one, { ...one, name: 'b' })
  const key = keyring.keyOf(one)
  assert.deepEqual([key.value, runs()], ['token-1', 1])
  pass(59_999)
  await use(one)
  assert.equal(runs(), 1)
  pass(1)
  await until(() => key.value === 'token-2')
  assert.deepEqual([key.known, key.version], [['token-2', 'token-1'], 2])
})

/** Commands that were started from now on, and how many of them have come to an end. */
function watchCommands() {
  const seen = { started: 0, ended: 0 }
  const note = (message: unknown) => {
    seen.started++
    ;(message as { process: ChildProcess }).process.once('close', () => seen.ended++)
  }
  subscribe('child_process', note)
  atEnd(() => unsubscribe('child_process', note))
  return seen
}

const bad: [name: string, script: string, why: string][] = [
  ['exits with another code', 'echo token-x; exit 3', '/bin/sh: exit 3'],
  ['is killed', 'kill -9 $$', '/bin/sh: SIGKILL'],
  ['prints nothing', 'true', '/bin/sh: what it prints holds no key: it is empty'],
  ['prints its key on the wrong output', 'echo token-x >&2', '/bin/sh: what it prints holds no key: it is empty'],
  [
    'prints two lines',
    'echo token-x; echo token-y',
    '/bin/sh: what it prints must hold one key and nothing else: a single word',
  ],
  ['prints without an end', 'yes token-x', '/bin/sh: it prints too much'],
]
for (const [name, script, why] of bad) {
  test(`N-F3 a command that ${name} is logged without its output, and run again after 5 s, then 10 s`, async () => {
    const { keyring, account, use, pass, told } = start()
    const seen = watchCommands()
    const one = account(sh(script))
    await use(one)
    assert.deepEqual([keyring.keyOf(one).value, told], [undefined, [failed(why, false)]])
    for (const [run, waitMs] of [
      [2, 5_000],
      [3, 10_000],
    ] as const) {
      // Its end is known, and the wait counts from now.
      await until(() => seen.ended === run - 1)
      pass(waitMs - 1)
      assert.equal(seen.started, run - 1)
      pass(1)
      assert.equal(seen.started, run)
    }
    await until(() => seen.ended === 3)
    assert.equal(told.length, 1)
    assert.doesNotMatch(told.join(), /token/)
  })
}

test('N-F3 a command that does not exist is reported', async () => {
  const { keyring, account, use, told } = start()
  const one = account({ command: ['/nowhere/token'], lifetimeMs: 60_000 })
  await use(one)
  assert.deepEqual([keyring.keyOf(one).value, told], [undefined, [failed('/nowhere/token: ENOENT', false)]])
})

test('N-F3 a command that hangs is ended after 30 s with all its child processes, and its key stays in use', async () => {
  const { keyring, account, use, pass, told } = start()
  const pids = join(testFolder('keys'), 'pids')
  const { script, runs } = counting(`[ -e ${pids} ] && exec sleep 1000; sleep 1000 & echo $! > ${pids}; wait`)
  const one = account(sh(script))
  void use(one)
  await until(() => runs() === 1 && existsSync(pids) && readFileSync(pids, 'utf8').endsWith('\n'))
  const pid = Number(readFileSync(pids, 'utf8'))
  assert.ok(isAlive(pid))
  pass(29_999)
  assert.deepEqual(told, [])
  pass(1)
  assert.deepEqual(told, [failed('/bin/sh: it takes too long', false)])
  await until(() => !isAlive(pid))
  pass(5_000)
  await until(() => runs() === 2)
  // Who goes, goes with all that he started.
  keyring.close()
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // One that nobody has waited for yet is dead all the same.
    return !/^\d+ \([^)]*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

test('N-F3 the command of a refused key runs early, but at least five seconds after its last run', async () => {
  const { keyring, account, use, pass } = start()
  const { script, runs } = counting('echo token')
  const one = account(sh(script))
  await use(one)
  const key = keyring.keyOf(one)
  pass(1_000)
  key.doubt(true)
  pass(3_999)
  assert.equal(runs(), 1)
  pass(1)
  await until(() => runs() === 2)
})

test('U14 a command that no configuration names is not run again, and its key stays for running requests', async () => {
  const { keyring, account, use, pass } = start()
  const { script, runs } = counting('echo token')
  const one = account(sh(script, 1_000))
  await use(one)
  const key = keyring.keyOf(one)
  keyring.adopt([])
  pass(10_000)
  await turn()
  assert.deepEqual([runs(), key.value], [1, 'token'])
  // A request that was begun with it asks what must not be shown of it.
  assert.deepEqual(keyring.keyOf(one).known, ['token'])
  pass(10_000)
  await turn()
  assert.equal(runs(), 1)
  await use(one)
  assert.equal(runs(), 2)
})

test('U14 a key file that is rotated while a reload reads it is soon read again', async () => {
  const { keyring, account, use, pass } = start()
  const file = join(testFolder('rotated'), 'key')
  writeFileSync(file, 'key-two')
  await use(account({ file }, 'key-one'))
  const key = keyring.keyOf(account({ file }))
  await until(() => {
    pass(1_000)
    return key.value === 'key-two'
  })
  await use(account({ file }, 'key-one'))
  await until(() => {
    pass(1_000)
    return key.value === 'key-two'
  })
})
