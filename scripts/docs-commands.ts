import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isPrinted } from './docs/compare.ts'
import { commandPages, readPage } from './docs/page.ts'
import { Session } from './docs/session.ts'

// npm run test:docs [-- PAGE …] [--verbose]
//
// Runs the commands of all pages as a reader would. Each page gets a new copy of the checkout, with a real gateway and
// its simulated models. Output that a page shows must be printed. scripts/docs/page.ts explains the marks in pages.

const root = join(import.meta.dirname, '..')
const asked = process.argv.slice(2).filter((one) => !one.startsWith('--'))
const isVerbose = process.argv.includes('--verbose')
const pages = commandPages(root)

let ran = 0
let compared = 0
const notHere = new Map<string, number>()
const findings: string[] = []

for (const page of pages) {
  if (asked.length > 0 && !asked.some((one) => page.endsWith(one))) continue
  const before = { ran, findings: findings.length }
  try {
    await tryPage(page)
  } catch (error) {
    findings.push(`${page}: ${error instanceof Error ? error.message : error}`)
  }
  if (ran > before.ran || findings.length > before.findings) {
    console.log(
      `${findings.length > before.findings ? 'DIFFERS' : 'ok     '} ${page}: ${ran - before.ran} commands ran`,
    )
  }
}

for (const finding of findings) console.log(`\n${finding}`)
console.log('\ncould not run here:')
for (const [reason, count] of [...notHere].sort((a, b) => b[1] - a[1]))
  console.log(`  ${String(count).padStart(3)}  ${reason}`)
const absent = [...notHere.values()].reduce((sum, count) => sum + count, 0)
console.log(
  `\n${ran} commands ran, ${compared} outputs compared, ${absent} commands could not run here, ${findings.length} differ`,
)
process.exitCode = findings.length > 0 ? 1 : 0

async function tryPage(page: string): Promise<void> {
  const steps = readPage(readFileSync(join(root, page), 'utf8'))
  for (const step of steps) {
    if (step.kind === 'command' && step.notHere !== undefined)
      notHere.set(step.notHere, (notHere.get(step.notHere) ?? 0) + 1)
  }
  if (!steps.some((step) => step.kind === 'command' && step.notHere === undefined)) return
  const session = await Session.open()
  const outputs: string[] = []
  try {
    for (const [index, step] of steps.entries()) {
      if (step.kind === 'read') session.read(step.from, step.to)
      else if (step.kind === 'file') session.writeFile(step.name, step.text)
      else if (step.kind === 'first') {
        const { exit, output } = await session.run(step.text)
        if (isVerbose) console.log(`(${step.text})\n${output}`)
        if (exit !== 0)
          throw new Error(`line ${step.line}: the set-up of the trial fails with ${exit}: ${step.text}\n${output}`)
      } else if (step.kind === 'command') {
        if (step.notHere !== undefined) continue
        const { exit, output, typed } = await session.run(step.text)
        outputs[index] = output
        ran++
        if (isVerbose) console.log(`$ ${typed}\n${output}`)
        if (exit !== step.exit)
          findings.push(`${page}:${step.line}: ends with ${exit}, not ${step.exit}\n$ ${typed}\n${output}`)
      } else {
        const printed = outputs.slice(step.after, index).join('')
        if (steps.slice(step.after, index).every((one) => one.kind !== 'command' || one.notHere !== undefined)) continue
        compared++
        if (!isPrinted(step.text, printed, step.figuresDiffer)) {
          findings.push(`${page}:${step.line}: prints something else\n--- page\n${step.text}\n--- printed\n${printed}`)
        }
      }
    }
  } finally {
    await session.close()
  }
}
