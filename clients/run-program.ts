import { join } from 'node:path'
import type { ClientWire } from '../src/catalog/wire-names.ts'
import { bill } from './bill.ts'
import type { Cell } from './cell.ts'
import { programOf, versionOf } from './installs.ts'
import { modelOf, openPlace, type Place, run, setUp } from './place.ts'
import type { Program } from './programs.ts'
import { findWrongUsage } from './told.ts'

const limitMs = 300_000

type Said = { case: string; omitted?: string; failed?: string }

/** Runs all cases of a program with models of one wire. The program prints `CASE` and a JSON object for each. */
export async function runProgram(program: Program, clientWire: ClientWire, modelWire: ClientWire): Promise<Cell> {
  const place = await openPlace()
  const started = performance.now()
  const { client, source, file, setup } = program
  try {
    const command = programOf(source)
    const failures = setup ? await runPrinted(place, setup, command, clientWire, modelWire) : []
    const { gateway, env, work } = place
    const given = {
      TRIWIRE_URL: gateway.url,
      TRIWIRE_KEY: gateway.key,
      TRIWIRE_WIRE: clientWire,
      TRIWIRE_MODEL_WIRE: modelWire,
      PYTHONDONTWRITEBYTECODE: '1',
    }
    const args = file ? [join(import.meta.dirname, file)] : []
    const ran = await run(command, args, { cwd: work, env: { ...env, ...given }, limitMs })
    const said = ran.stdout
      .split('\n')
      .flatMap((line) => (line.startsWith('CASE ') ? [JSON.parse(line.slice(5)) as Said] : []))
    if (ran.code !== 0 || said.length === 0) failures.push(`ended with ${ran.code}: ${ran.stderr.slice(-600)}`)
    failures.push(
      ...said.flatMap(({ case: name, failed }) => (failed ? [`${name}: ${failed.replaceAll(/\s+/g, ' ')}`] : [])),
      ...findLeft(place, said),
      ...gateway.takeViolations(),
      ...findWrongUsage(place),
    )
    const omitted = said.flatMap(({ case: name, omitted }) => (omitted ? [`${name}: ${omitted}`] : []))
    const seconds = Math.round((performance.now() - started) / 100) / 10
    const about = { client, package: source.package, version: versionOf(source), clientWire, modelWire }
    return { ...about, failures, omitted, ...bill(place), seconds }
  } finally {
    await place.close()
  }
}

/** Runs the program that `triwire setup` prints. @returns its failures */
async function runPrinted(
  place: Place,
  setup: string,
  command: string,
  clientWire: ClientWire,
  modelWire: ClientWire,
): Promise<string[]> {
  const { code } = await setUp(place, setup, clientWire, modelOf(modelWire))
  const ran = await run(command, ['-c', code!], { cwd: place.work, env: place.env, limitMs })
  return ran.stdout.includes('Hello') ? [] : [`the printed program failed: ${ran.stderr.slice(-300)}`]
}

/** Checks that the model's stream was ended when the client aborted. @returns the failures */
function findLeft({ gateway }: Place, said: readonly Said[]): string[] {
  const { failed = '', omitted } = said.find((one) => one.case === 'abort') ?? { omitted: 'it has no such case' }
  if (failed || omitted) return []
  const slow = gateway.simulator.requests.filter(
    ({ json }) => (json as { model?: string } | undefined)?.model === 'slow',
  )
  return slow.length > 0 && slow.every(({ closedEarly }) => closedEarly)
    ? []
    : ["abort: the model's stream was not ended"]
}
