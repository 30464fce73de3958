import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { checkOut } from '../../bench/servers.ts'
import { testFolder } from '../support/folder.ts'

/** A repository with two commits, whose lockfiles differ. */
function makeRepository(): { root: string; commits: string[] } {
  const root = testFolder('compare')
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', root, '-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], {
      encoding: 'utf8',
    })
  git('init', '-q')
  const commits = ['one', 'two'].map((lock) => {
    writeFileSync(join(root, 'package-lock.json'), lock)
    writeFileSync(join(root, 'code.ts'), lock)
    git('add', 'package-lock.json', 'code.ts')
    git('commit', '-qm', lock)
    return git('rev-parse', 'HEAD').trim()
  })
  mkdirSync(join(root, 'node_modules'))
  return { root, commits }
}

for (const [which, isOwn] of [
  ['this lockfile', true],
  ['another lockfile', false],
] as const)
  test(`issue 44 the benchmark runs a commit with ${which} on ${isOwn ? 'these packages' : 'its own packages'}`, () => {
    const { root, commits } = makeRepository()
    const installed: string[] = []
    const place = checkOut(commits[isOwn ? 1 : 0]!, testFolder('place'), root, (at) => void installed.push(at))
    assert.equal(readFileSync(join(place, 'code.ts'), 'utf8'), isOwn ? 'two' : 'one')
    assert.deepEqual(installed, isOwn ? [] : [place])
    if (isOwn) assert.equal(realpathSync(join(place, 'node_modules')), realpathSync(join(root, 'node_modules')))
  })

test('issue 44 an unknown commit is reported, and nothing is installed', () => {
  const { root } = makeRepository()
  assert.throws(
    () => checkOut('no-such-ref', testFolder('place'), root, () => assert.fail('it was installed')),
    new Error('no-such-ref is neither a checkout nor a commit'),
  )
})
