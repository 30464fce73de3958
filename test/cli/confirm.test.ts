import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import test from 'node:test'
import { Command } from 'commander'
import { confirm } from '../../src/cli/confirm.ts'

/* The one question that commands ask a person (X15, N-F7), with a person. */

const told = ['a.yaml was left as it is', 'run with --yes'] as const

/** Asks, with somebody who types this; undefined: who closes the terminal. @returns what was thrown, and what was shown */
async function answer(typed: string | undefined, { isTTY = true, args = [] as string[] } = {}) {
  const stdin = Object.assign(new PassThrough(), { isTTY })
  const stderr = new PassThrough()
  const command = new Command().option('--json').parse(args, { from: 'user' })
  const asked = confirm(command, 'Write a.yaml?', told, { stdin, stderr })
  if (typed === undefined) stdin.end()
  else stdin.write(typed)
  const thrown = await asked.then(
    () => undefined,
    (error: Error) => error.message,
  )
  return { thrown, shown: `${stderr.read() ?? ''}` }
}

test('X15 a person is asked, and only yes means yes', async () => {
  for (const typed of ['y\n', 'Y\n', ' yes \n'])
    assert.deepEqual(await answer(typed), { thrown: undefined, shown: 'Write a.yaml? [y/N] ' })
  for (const typed of ['\n', 'n\n', 'yep\n', undefined]) assert.equal((await answer(typed)).thrown, told[0], `${typed}`)
})

test('X15 without a terminal the command names the option for yes; with JSON output nobody is asked', async () => {
  const how = { thrown: `${told[0]}: ${told[1]}`, shown: '' }
  assert.deepEqual(await answer('y\n', { isTTY: false }), how)
  assert.deepEqual(await answer('y\n', { args: ['--json'] }), how)
})
