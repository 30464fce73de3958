import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { areas, type Case, type Json, type Wire, wires } from './case.ts'
import { operatorNames } from './match.ts'
import { readPath } from './paths.ts'
import { findViolation } from './schema.ts'

const folder = join(import.meta.dirname, '..')

/** Reads all case files, in the order of their ids. @throws Error that lists every file that is not right */
export function loadCases(root = join(folder, 'cases')): Case[] {
  const files = globSync('*/*.json', { cwd: root }).map((file) => file.replaceAll('\\', '/'))
  const faults: string[] = []
  const cases = files.flatMap((file): Case[] => {
    try {
      return [readCase(file, readFileSync(join(root, file), 'utf8'))]
    } catch (error) {
      faults.push(`${file}: ${(error as Error).message}`)
      return []
    }
  })
  if (faults.length > 0) throw new Error(faults.join('\n'))
  return cases.sort((a, b) => (a.id < b.id ? -1 : 1))
}

let schema: { [keyword: string]: unknown } | undefined

/**
 * Reads one case.
 * @param file its path below `cases`: area and id follow from it
 * @throws Error that names the member that is not right
 */
export function readCase(file: string, text: string): Case {
  schema ??= JSON.parse(readFileSync(join(folder, 'case.schema.json'), 'utf8')) as { [keyword: string]: unknown }
  const content = JSON.parse(text) as { [name: string]: Json }
  const violation = findViolation(content, schema)
  if (violation) throw new Error(violation)
  const id = file.replace(/\.json$/, '')
  const area = areas.find((name) => id.startsWith(`${name}/`))
  if (!area) throw new Error(`it lies in no area; areas are ${areas.join(', ')}`)
  if (!/^[a-z-]+\/[a-z0-9-]+$/.test(id)) throw new Error('its name has other characters than a-z, 0-9 and -')
  const { $schema, ...members } = content
  const one = { id, area, ...members } as unknown as Case
  checkCase(one)
  return one
}

/** The expansions of a case: each pair of a client's and a model's wire. */
export function pairsOf({ client, model, pairs }: Case): { client: Wire; model: Wire }[] {
  const models = wires.filter((wire) => !model || model[wire] || model['*'])
  const clients = wires.filter((wire) => client[wire] || client['*'])
  const all = clients.flatMap((one) =>
    // A case that asks no model is the same for all of them.
    (model ? models : [one]).map((other) => ({ client: one, model: other })),
  )
  return pairs ? all.filter((pair) => pairs.includes(`${pair.client}>${pair.model}`)) : all
}

function checkCase(one: Case): void {
  const pairs = pairsOf(one)
  const unknown = one.pairs?.find((name) => !pairs.some((pair) => name === `${pair.client}>${pair.model}`))
  if (unknown) throw new Error(`pairs has ${unknown}, which client and model do not have`)
  for (const [wire, { steps }] of Object.entries(one.client)) {
    for (const { request, expect = {} } of steps) {
      checkExpectation(expect)
      const forms = (['body', 'ask', 'raw', 'base64'] as const).filter((name) => request[name] !== undefined)
      if (forms.length > 1) throw new Error(`client.${wire} has a request with ${forms.join(' and ')}: it may have one`)
    }
  }
  for (const [wire, { exchanges }] of Object.entries(one.model ?? {})) {
    for (const { reply, expect = {} } of exchanges) {
      checkExpectation(expect)
      const forms = [reply.answer, reply.json ?? reply.events, reply.raw, reply.base64].filter(
        (form) => form !== undefined,
      )
      if (forms.length > 1) throw new Error(`model.${wire} has a reply in ${forms.length} forms: it may have one`)
    }
  }
  const expectations = [...Object.values(one.client).flatMap(({ steps }) => steps), ...exchangesOf(one)]
  if (!expectations.some(({ expect }) => expect && Object.keys(expect).length > 0) && !one.bill)
    throw new Error('it expects nothing')
}

function exchangesOf({ model }: Case) {
  return Object.values(model ?? {}).flatMap(({ exchanges }) => exchanges)
}

/** Refuses paths that cannot be read and operators that are unknown, before anything runs. */
function checkExpectation(matcher: { [name: string]: Json }): void {
  for (const [path, inner] of Object.entries(matcher)) {
    readPath(path)
    checkOperators(inner)
  }
}

function checkOperators(matcher: Json): void {
  if (typeof matcher !== 'object' || matcher === null) return
  const names = Object.keys(matcher)
  const own = names.filter((name) => name.startsWith('$'))
  const unknown = own.find((name) => !operatorNames.includes(name))
  if (unknown) throw new Error(`the operator ${unknown} is unknown; known are ${operatorNames.join(', ')}`)
  if (own.length > 0 && own.length < names.length)
    throw new Error(`operators and members stand together: ${names.join(', ')}`)
  for (const [name, inner] of Object.entries(matcher)) {
    // A wrong expression throws here, and not in the middle of a run.
    if (name === '$matches') new RegExp(String(inner), 'su')
    if (name !== '$equals') checkOperators(inner)
  }
}
