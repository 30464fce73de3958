import type { ClientWire } from '../src/catalog/wire-names.ts'
import { bill } from './bill.ts'
import type { Cell } from './cell.ts'
import { versionOf } from './installs.ts'
import { modelOf, openPlace, run, scripted, setUp } from './place.ts'
import { caseNames, type Sdk } from './sdks/sdk.ts'
import { findWrongUsage } from './told.ts'

const limitMs = 20_000

/** Runs all cases of an SDK with models of one wire, and the program that its setup prints. */
export async function runSdk(sdk: Sdk, clientWire: ClientWire, modelWire: ClientWire): Promise<Cell> {
  const place = await openPlace()
  const started = performance.now()
  const failures: string[] = []
  const omitted: string[] = []
  try {
    const { gateway, env } = place
    const source = { from: 'npm', package: sdk.packages[0]!, bin: '' } as const
    const model = modelOf(modelWire)
    const { simulator } = gateway
    await attempt('setup', async () => {
      const { code } = await setUp(place, sdk.client, clientWire, model)
      const cwd = import.meta.dirname
      const ran = await run(process.execPath, ['--input-type=module', '-e', code!], { cwd, env, limitMs })
      if (!ran.stdout.includes('Hello')) throw new Error(`the printed program failed: ${ran.stderr.slice(0, 300)}`)
    })
    const target = {
      origin: gateway.url,
      key: gateway.key,
      model,
      wire: clientWire,
      modelWire,
      script: (script: object) => simulator.script(scripted, script),
    }
    const cases = sdk.cases(target)
    for (const name of caseNames) {
      const act = cases[name]
      if (typeof act === 'string') {
        omitted.push(`${name}: ${act}`)
        continue
      }
      simulator.script(scripted, {})
      await attempt(name, act)
      if (name === 'abort') await attempt(name, () => closedEarly(simulator))
    }
    failures.push(...gateway.takeViolations(), ...findWrongUsage(place))
    const seconds = Math.round((performance.now() - started) / 100) / 10
    const about = { client: sdk.client, package: source.package, version: versionOf(source), clientWire, modelWire }
    return { ...about, failures, omitted, ...bill(place), seconds }
  } finally {
    await place.close()
  }

  async function attempt(name: string, act: () => Promise<void>): Promise<void> {
    const late = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error(`not done after ${limitMs / 1000} s`)), limitMs).unref()
    })
    await Promise.race([act(), late]).catch((error: unknown) => {
      failures.push(`${name}: ${String(error).replaceAll(/\s+/g, ' ').slice(0, 400)}`)
    })
  }
}

/** Waits until the stream of the model has ended, after the client aborted. @throws Error if it goes on */
async function closedEarly({ requests }: { requests: { closedEarly: boolean }[] }): Promise<void> {
  const last = requests.at(-1)!
  for (let tries = 0; tries < 200 && !last.closedEarly; tries++) await new Promise((resolve) => setTimeout(resolve, 10))
  if (!last.closedEarly) throw new Error("the model's stream was not ended")
}
