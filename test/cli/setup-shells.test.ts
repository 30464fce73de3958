import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import test from 'node:test'
import fc from 'fast-check'
import { commandLine, keyPlaceholder, likelyShell, setLine } from '../../src/programs/shells.ts'

// Tried in fish 3.6 too; here they are read by the rules of each shell's manual.
const nasty = ["it's", '$HOME `x` "y" \\', "\\'", '’‘‚‛', '%PATH% !x ; & | # *', ' ', '-x.y', 'a:b,c@d', 'é日本']

test('lines for a POSIX shell have the intended meaning: sh reads them back', () => {
  const script = nasty.flatMap((value, at) => [setLine('posix', `V${at}`, value), `printf '%s\\0' "$V${at}"`])
  const words = commandLine('posix', ['printf', '%s\\0', ...nasty, { home: 'x y' }].slice(0, -1))
  const said = execFileSync('/bin/sh', ['-c', `${script.join('\n')}\n${words}`], { encoding: 'utf8' })
  assert.deepEqual(said.split('\0').slice(0, -1), [...nasty, ...nasty])
})

/** In single quotes fish knows two escapes, and PowerShell a doubled quote of any of its five kinds. */
const readers = {
  fish: (line: string) => take(line, /^set -gx N '((?:[^\\']|\\[\\'])*)'$/).replace(/\\([\\'])/g, '$1'),
  powershell: (line: string) =>
    take(line, /^\$env:N = '((?:[^'‘’‚‛]|''|‘‘|’’|‚‚|‛‛)*)'$/).replace(/(['‘’‚‛])\1/g, '$1'),
}

function take(line: string, pattern: RegExp): string {
  const [, text] = pattern.exec(line) ?? []
  assert.ok(text !== undefined, line)
  return text
}

for (const shell of ['fish', 'powershell'] as const) {
  test(`lines for ${shell} have the intended meaning`, () => {
    const value = fc.oneof(
      fc.constantFrom(...nasty),
      fc.string({ unit: fc.constantFrom("'", '\\', '’', '‛', 'a', '$', '"', ' ') }),
    )
    fc.assert(fc.property(value, (text) => assert.equal(readers[shell](setLine(shell, 'N', text)), text)))
  })
}

test('words that a shell would interpret are quoted in a command', () => {
  const words = ['cline', '-m', 'a/b-1.2', 'custom:x', '--config', { home: '.continue/triwire.yaml' }]
  assert.equal(commandLine('posix', words), "cline -m a/b-1.2 'custom:x' --config ~/.continue/triwire.yaml")
  assert.equal(commandLine('fish', words), "cline -m a/b-1.2 'custom:x' --config ~/.continue/triwire.yaml")
  assert.equal(
    commandLine('powershell', words),
    'cline -m a/b-1.2 \'custom:x\' --config "$HOME/.continue/triwire.yaml"',
  )
})

test('the shell is that of the user', () => {
  const cases: [NodeJS.Platform, string | undefined, string][] = [
    ['linux', '/usr/bin/fish', 'fish'],
    ['darwin', '/bin/zsh', 'posix'],
    ['linux', undefined, 'posix'],
    ['linux', '/usr/bin/pwsh', 'powershell'],
    ['win32', undefined, 'powershell'],
    ['win32', '/usr/bin/bash', 'posix'],
  ]
  for (const [platform, variable, shell] of cases) assert.equal(likelyShell(platform, variable), shell)
})

test('CON-3 a placeholder for the key is read as the variable, and the text around it literally', () => {
  const pieces = fc.array(fc.constantFrom(...nasty, keyPlaceholder, '$TRIWIRE', 'Bearer '), { maxLength: 5 })
  const value = pieces.map((some) => some.join(''))
  const values = fc.sample(value, 60)
  const script = values.flatMap((text, at) => [setLine('posix', `V${at}`, text), `printf '%s\\0' "$V${at}"`])
  const env = { TRIWIRE_API_KEY: `a "key" 'with' $HOME` }
  const said = execFileSync('/bin/sh', ['-c', script.join('\n')], { encoding: 'utf8', env })
  const expected = values.map((text) => text.replaceAll(keyPlaceholder, () => env.TRIWIRE_API_KEY))
  assert.deepEqual(said.split('\0').slice(0, -1), expected)
  assert.equal(setLine('fish', 'A', keyPlaceholder), 'set -gx A "$TRIWIRE_API_KEY"')
  assert.equal(setLine('powershell', 'A', keyPlaceholder), '$env:A = "$env:TRIWIRE_API_KEY"')
  assert.equal(setLine('powershell', 'A', `x ${keyPlaceholder}'`), `$env:A = ('x ' + "$env:TRIWIRE_API_KEY" + '''')`)
})
