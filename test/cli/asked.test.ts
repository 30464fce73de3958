import assert from 'node:assert/strict'
import test from 'node:test'
import { asksToServe, wordsOf } from '../../src/cli/options.ts'

test('issue 14 the server starts without reading other commands; help or a mistyped command reads them all', () => {
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

test('issue 14 the value of an option is not taken as a command word', () => {
  assert.deepEqual(wordsOf(['--config', 'a.yaml', 'key', '--json', 'create', 'acme']), ['key', 'create', 'acme'])
})
