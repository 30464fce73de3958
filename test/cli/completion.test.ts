import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { testFolder } from '../support/folder.ts'
import { runWarm } from './run.ts'

/* What a shell offers after what was typed (N-F18). Bash is asked itself. */

const folder = testFolder('completion')

const typed: [line: string, offered: RegExp, not?: RegExp][] = [
  ['triwire acc', /^account$/],
  ['triwire account re', /^rename$/],
  ['triwire --json account cr', /^create credit$/],
  ['triwire key rotate k --gr', /^--grace$/],
  ['triwire ledger ', /list.*totals.*show.*verify.*export/, /\baccount\b/],
  ['triwire setup codex --wire ', /^messages chat responses$/],
  ['triwire check --on', /^--online$/],
  ['triwire tra', /^translate$/],
  ['triwire translate --from ', /^messages chat responses$/],
  ['triwire translate --answer a', /^a-file\.yaml$/],
  ['triwire --st', /^--store$/],
  ['triwire account list --config a', /^a-file\.yaml$/],
  ['triwire account create x --credit ', /^$/],
  ['triwire completion --h', /^--help$/],
]

test('N-F18 bash completes commands, options, words of options, and files', async () => {
  const { stdout } = await runWarm(['completion', 'bash'])
  writeFileSync(join(folder, 'triwire.bash'), stdout)
  writeFileSync(join(folder, 'a-file.yaml'), '')
  const asks = typed.map(([line]) => {
    const words = line.split(' ')
    return `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); _triwire; echo "\${COMPREPLY[*]}"`
  })
  const told = execFileSync('bash', ['-c', ['. ./triwire.bash', ...asks].join('\n')], { cwd: folder, encoding: 'utf8' })
  for (const [at, line] of told.trimEnd().split('\n').entries()) {
    const [asked, offered, not] = typed[at]!
    assert.match(line, offered, asked)
    if (not) assert.doesNotMatch(line, not, asked)
  }
})

test('N-F18 the scripts of zsh and fish complete at the same places', async () => {
  const zsh = (await runWarm(['completion', 'zsh'])).stdout
  assert.match(zsh, /^#compdef triwire\n/)
  assert.match(
    zsh,
    /"account"\) compadd -- create list show set grant suspend activate rename credit --version --config /,
  )
  assert.match(zsh, /"setup --wire"\) compadd -- messages chat responses; return ;;/)
  const fish = (await runWarm(['completion', 'fish'])).stdout
  assert.match(fish, /complete -c triwire -f -n '__triwire_at "account"' -a rename -d 'give an account another name; /)
  assert.match(
    fish,
    /-n '__triwire_at "setup"' -l wire -x -a 'messages chat responses' -d 'the wire that the client uses; default: /,
  )
  assert.match(fish, /-l config -r -F -d/)
  for (const script of [zsh, fish]) assert.doesNotMatch(script, /undefined|\[object/)
})
