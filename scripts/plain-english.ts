import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFaults } from './support/plain-english.ts'

// node bin/node.mjs scripts/plain-english.ts [folder or file …]
//
// Checks that comments are plain English: the subject is named, the words are standard ones, sentences are short.
// Every finding is listed, and fails. Without folders or files all are checked.

const root = join(import.meta.dirname, '..')
const paths = process.argv.slice(2).map((path) => path.replace(/\/$/, ''))

const files = globSync(['{src,console/src,scripts,test/support}/**/*.{ts,tsx,mts,mjs}'], { cwd: root })
for (const file of files.map((name) => name.replaceAll('\\', '/')).sort()) {
  if (paths.length > 0 && !paths.some((path) => file === path || file.startsWith(`${path}/`))) continue
  for (const { line, text } of findFaults(readFileSync(join(root, file), 'utf8'))) {
    console.error(`${file}:${line}: ${text}`)
    process.exitCode = 1
  }
}
