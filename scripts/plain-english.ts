import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Counts, compareCounts, countFindings, type Finding, findFaults, kinds } from './support/plain-english.ts'

// node bin/node.mjs scripts/plain-english.ts [--write | folder or file …]
//
// Checks that comments are plain English: the subject is named, the words are standard ones, sentences are short.
// The exceptions file has the number of findings that each file may have. More findings than that fail, and so do fewer:
// `--write` then lowers the numbers. With folders or files, every finding in them is listed.

const root = join(import.meta.dirname, '..')
const exceptionsFile = join(import.meta.dirname, 'support/plain-english-exceptions.json')

const files = globSync(['{src,console/src,scripts,test/support}/**/*.{ts,tsx,mts,mjs}'], { cwd: root })
  .map((file) => file.replaceAll('\\', '/'))
  .sort()
const found = new Map(files.map((file) => [file, findFaults(readFileSync(join(root, file), 'utf8'))]))
const allowed: Counts = JSON.parse(readFileSync(exceptionsFile, 'utf8'))

const paths = process.argv.slice(2).filter((arg) => !arg.startsWith('--'))
if (process.argv.includes('--write')) writeExceptions()
else if (paths.length > 0) listFindings()
else check()

function check(): void {
  const differences = compareCounts(found, allowed)
  for (const difference of differences) console.error(difference)
  if (differences.length > 0) process.exitCode = 1
}

function listFindings(): void {
  for (const [file, findings] of found) {
    if (!paths.some((path) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`))) continue
    for (const { line, text } of findings) console.log(`${file}:${line}: ${text}`)
  }
}

function writeExceptions(): void {
  const now: Counts = {}
  for (const [file, findings] of found) if (findings.length > 0) now[file] = sortKinds(findings)
  const lines = Object.entries(now).map(([file, counts]) => {
    const numbers = Object.entries(counts).map(([kind, count]) => `"${kind}": ${count}`)
    return `  ${JSON.stringify(file)}: { ${numbers.join(', ')} }`
  })
  writeFileSync(exceptionsFile, `{\n${lines.join(',\n')}\n}\n`)
  for (const kind of kinds) console.log(`${kind}: ${sum(allowed, kind)} before, ${sum(now, kind)} now`)
}

function sortKinds(findings: readonly Finding[]): Counts[string] {
  const counts = countFindings(findings)
  return Object.fromEntries(kinds.filter((kind) => counts[kind]).map((kind) => [kind, counts[kind]]))
}

function sum(counts: Counts, kind: (typeof kinds)[number]): number {
  return Object.values(counts).reduce((total, numbers) => total + (numbers[kind] ?? 0), 0)
}
