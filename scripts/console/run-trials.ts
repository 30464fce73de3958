import { closeBrowser } from './browser.ts'
import { trials } from './trials.ts'

/** Runs all trials, or those whose names begin with one of these, one after the other. Prints their results. */
export async function runTrials(asked: readonly string[], pictures: string | undefined): Promise<void> {
  const names = asked.filter((arg) => !arg.startsWith('--'))
  const chosen = trials.filter(({ name }) => names.length === 0 || names.some((start) => name.startsWith(start)))
  let failed = 0
  for (const { name, run } of chosen) {
    const startedMs = performance.now()
    const seconds = () => `${((performance.now() - startedMs) / 1_000).toFixed(1)} s`
    try {
      const lines = await run({ pictures: asked.includes('--screenshots') ? pictures : undefined })
      console.log(`ok      ${name}, ${seconds()}`)
      for (const line of lines ?? []) console.log(`        ${line}`)
    } catch (error) {
      failed++
      console.log(`FAILED  ${name}, ${seconds()}`)
      console.log(`        ${String((error as Error).stack).replaceAll('\n', '\n        ')}`)
    }
  }
  await closeBrowser()
  console.log(`${chosen.length - failed} of ${chosen.length} trials passed`)
  process.exit(failed === 0 && chosen.length > 0 ? 0 : 1)
}
