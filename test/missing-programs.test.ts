import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { lookAtMachine, type Machine, nameMissingPrograms } from '../scripts/support/missing-programs.ts'

const whole: Machine = { isRoot: true, env: {}, has: () => true, hasPostgres: true }
const without = (...programs: string[]): Machine => ({ ...whole, has: (program) => !programs.includes(program) })
const all = () => true
const ofPostgres = (file: string) => file === 'support/postgres.ts'

test('a missing program that the selected tests start is reported in one line, with its package', () => {
  assert.deepEqual(nameMissingPrograms(whole, all), [])
  for (const [program, name, debian] of [
    ['runuser', 'runuser', 'util-linux'],
    ['prometheus', 'Prometheus', 'prometheus'],
    ['promtool', 'Prometheus', 'prometheus'],
    ['openssl', 'openssl', 'openssl'],
    ['pgrep', 'pgrep', 'procps'],
    ['prlimit', 'prlimit', 'util-linux'],
    ['bash', 'bash', 'bash'],
  ] as const) {
    const [line = '', ...more] = nameMissingPrograms(without(program), all)
    assert.match(line, new RegExp(`^MISSING ${name}: [^\\n]* Install it: apt-get install ${debian}$`))
    assert.deepEqual(more, [])
    assert.deepEqual(
      nameMissingPrograms(without(program), () => false),
      [],
      'no selected test starts it',
    )
  }
})

test('PostgreSQL is reported if it is missing and not left out; runuser only if root starts PostgreSQL', () => {
  const none = { ...whole, hasPostgres: false }
  assert.deepEqual(nameMissingPrograms(none, ofPostgres), [
    'MISSING PostgreSQL: without it the tests of a store in PostgreSQL do not run. Install it: apt-get install postgresql',
  ])
  const names = (machine: Machine) => nameMissingPrograms(machine, ofPostgres).map((line) => line.split(/[ :]/)[1])
  assert.deepEqual(names({ ...none, env: { TRIWIRE_TEST_POSTGRES: '0' } }), [])
  assert.deepEqual(names({ ...none, env: { TRIWIRE_TEST_POSTGRES: '1' } }), ['PostgreSQL'])
  assert.deepEqual(names(without('runuser')), ['runuser'])
  assert.deepEqual(names({ ...without('runuser'), isRoot: false }), [])
  assert.deepEqual(names({ ...without('runuser'), hasPostgres: false }), ['PostgreSQL'])
})

test('a program is searched on the path, and the file that represents its tests exists', () => {
  const { has } = lookAtMachine()
  assert.deepEqual([has('sh'), has('no-such-program')], [true, false])
  const asked: string[] = []
  nameMissingPrograms({ ...whole, has: () => false }, (file) => asked.push(file) > 0)
  assert.ok(asked.length >= 6)
  for (const file of asked) assert.ok(existsSync(join(import.meta.dirname, file)), file)
})

test('NEW-11 a program for root is found even if PATH lacks its folder', () => {
  const path = process.env['PATH']
  process.env['PATH'] = '/nonexistent'
  try {
    const { has } = lookAtMachine()
    for (const program of ['runuser', 'chroot'])
      assert.equal(
        has(program),
        ['/usr/sbin', '/sbin'].some((folder) => existsSync(join(folder, program))),
        program,
      )
    assert.ok(!has('openssl'))
  } finally {
    process.env['PATH'] = path
  }
})
