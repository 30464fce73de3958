import assert from 'node:assert/strict'
import test from 'node:test'
import { asksToServe, wordsOf } from '../../src/cli/options.ts'

test('issue 14 a start of the server reads no other command; whoever asks about them, or types none of them right, gets all', () => {
  for (const line of [
    '',
    'serve',
    '--config triwire.yaml',
    '--json serve',
    '--listen 0.0.0.0:80',
    '--store a.db serve',
  ])
    assert.ok(asksToServe(line.split(' ').filter(Boolean)), line)
  for (const line of [
    '--help',
    '-h',
    'help',
    'key create acme',
    '--config serve key',
    'serv',
    '--store a.db account list',
  ])
    assert.ok(!asksToServe(line.split(' ')), line)
})

test('issue 14 the value of an option is no word', () => {
  assert.deepEqual(wordsOf(['--config', 'a.yaml', 'key', '--json', 'create', 'acme']), ['key', 'create', 'acme'])
})
