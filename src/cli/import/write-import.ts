import { existsSync, readFileSync, rmSync } from 'node:fs'
import type { Command } from 'commander'
import { parse, stringify } from 'yaml'
import type { z } from 'zod'
import { hasEnded } from '../../accounts/account.ts'
import type { Books } from '../../accounts/books.ts'
import type { Calendar } from '../../accounts/calendar.ts'
import { formatCredits } from '../../accounts/credit.ts'
import type { ForeignCounts, ForeignImport } from '../../accounts/foreign-keys.ts'
import { foreignKeysMax } from '../../accounts/foreign-keys.ts'
import { asObject } from '../../bytes/json.ts'
import { findProblems } from '../../config/load.ts'
import { writeWhole } from '../../host/whole-file.ts'
import { end, endsAt } from '../../operations/fields.ts'
import { isJson, print } from '../print.ts'
import { findStore, type GlobalOptions, withStore } from '../store.ts'
import { type ImportedSetting, listText } from './import-report.ts'
import type { KeysPlan } from './litellm-keys.ts'

export type WriteOptions = { output?: string; force?: true; dryRun?: true; until: string }

/** The result of an import: a configuration, and a plan if keys are imported into the store. */
type MadeImport = {
  /** The file of the other gateway. */
  from: string
  gateway: string
  /** The word after `triwire import`. */
  command: string
  config: Readonly<Record<string, unknown>>
  report: { settings: readonly ImportedSetting[]; notes: readonly string[] }
  plan: KeysPlan | undefined
}

/** Refuses to replace a file. @throws Error if the file exists and `--force` is not set */
export function refuseToReplace({ output, force }: WriteOptions): void {
  if (isThere(output) && !force)
    throw new Error(`${output} is there already: name another file, or add --force to replace it`)
}

function isThere(file: string | undefined): file is string {
  return file !== undefined && existsSync(file)
}

/** Reads the time when keys end, such as 180d. Null stands for `none`. @throws Error for any other text */
function readUntil(text: string): z.output<typeof end> {
  const read = end.safeParse(text)
  if (!read.success) throw new Error(`--until ${read.error.issues[0]!.message}`)
  return read.data
}

/**
 * Prints or writes the new configuration, and imports keys into the store. First the configuration is written to
 * `FILE.import`. Then the keys are imported in one transaction. Last, the configuration is written to its own place.
 * @throws Error if the configuration has mistakes, if the store refuses the keys, or if the file cannot be written
 */
export async function writeImport(made: MadeImport, options: WriteOptions, command: Command): Promise<void> {
  const { from, gateway, report, plan } = made
  const { output, dryRun } = options
  const until = readUntil(options.until)
  const config = { ...storeOf(output), ...made.config }
  const text = `# Made from ${gateway}'s configuration by triwire import ${made.command}.\n${stringify(config, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0, aliasDuplicateObjects: false })}`
  const problems = findProblems(output ?? 'triwire.yaml', text, withStandIns(text, process.env))
  if (problems.length > 0)
    throw new Error(
      `${from} would become a configuration with mistakes, and nothing was written:\n${problems.map(({ message }) => message).join('\n')}`,
    )
  if (plan && plan.foreign.keys.length > foreignKeysMax)
    throw new Error(
      `the dump has ${plan.foreign.keys.length} keys, and ${foreignKeysMax} are brought in at once: split it`,
    )
  // The store is found before the configuration is replaced, because the old configuration may name it.
  const named = { ...(isThere(output) && { config: output }), ...command.optsWithGlobals<GlobalOptions>() }
  const place = plan && (await findStore(named)).shown
  const staged = output !== undefined && !dryRun ? `${output}.import` : undefined
  if (staged) write(staged, text)
  let counts: ForeignCounts | undefined
  try {
    if (plan && !dryRun) counts = await bringIn(plan.foreign, until, command, named)
    // The file is overwritten in place. So a link stays a link, and an existing file keeps its mode.
    if (staged) write(output!, text)
  } finally {
    if (staged) rmSync(staged, { force: true })
  }
  const list = [
    listText('settings', report.settings, report.notes),
    ...(plan ? ['', listText('keys and teams', plan.settings, plan.notes)] : []),
    ...(plan ? [sayKeys(plan, counts, place!)] : []),
    ...(dryRun ? ['Nothing was written: --dry-run.'] : []),
  ].join('\n')
  const data = {
    ...{ file: dryRun ? null : (output ?? null), ...report },
    ...(plan && {
      keys: { settings: plan.settings, notes: plan.notes, ...(counts && { store: place, ...tellCounts(counts) }) },
    }),
    ...(output === undefined && { config: text }),
  }
  if (output === undefined && !isJson(command)) console.error(list)
  print(command, data, () =>
    output === undefined
      ? text.trimEnd()
      : `${list}${dryRun ? '' : `\nWrote ${output}: triwire check says what else it needs.`}`,
  )
}

/** Returns the setting `store` of the configuration that will be replaced. The keys are imported into that store. */
function storeOf(output: string | undefined): { store?: unknown } {
  if (!isThere(output)) return {}
  try {
    const store = asObject(parse(readFileSync(output, 'utf8'), { logLevel: 'silent' }))?.['store']
    return store === undefined ? {} : { store }
  } catch {
    return {}
  }
}

/** Imports the keys into the store. @param until when they end at the latest; a day is one of the store's time zone */
function bringIn(
  plan: ForeignImport,
  until: z.output<typeof end>,
  command: Command,
  options: GlobalOptions,
): Promise<ForeignCounts> {
  const importKeys = (books: Books, calendar: Calendar) => {
    const nowMs = Date.now()
    const untilMs = until === null ? Number.POSITIVE_INFINITY : endsAt(until, nowMs, calendar)
    if (hasEnded(untilMs, nowMs)) throw new Error('--until names a moment that is over: name a later one')
    const keys = plan.keys.map((key) =>
      untilMs < (key.expiresMs ?? Number.POSITIVE_INFINITY) ? { ...key, expiresMs: untilMs } : key,
    )
    return books.importForeign({ ...plan, keys })
  }
  return withStore(command, importKeys, { create: true, options })
}

function tellCounts({ accounts, persons, keys, keysKnown, creditedNanos }: ForeignCounts) {
  return { accounts, persons, keys, known: keysKnown, credited: formatCredits(creditedNanos) }
}

function sayKeys({ foreign }: KeysPlan, counts: ForeignCounts | undefined, place: string): string {
  if (!counts)
    return `${foreign.keys.length} keys of ${foreign.accounts.length} accounts would be brought into ${place}.`
  const { accounts, persons, keys, keysKnown, creditedNanos } = counts
  const known = keysKnown > 0 ? `; ${keysKnown} were there already and stay as they are` : ''
  return `Brought in: ${keys} keys, ${accounts} accounts, ${persons} people, ${formatCredits(creditedNanos)} credits${known}.\nThe store is ${place}. The keys work as they are; a running server of this store knows them within a second. triwire key foreign lists them with their ends.`
}

function write(file: string, text: string): void {
  try {
    writeWhole(file, text)
  } catch (error) {
    throw new Error(`Cannot write ${file} (${(error as NodeJS.ErrnoException).code}): name another one with --output`)
  }
}

/** Valid values of settings. They replace variables that are unset here, because perhaps only the server has them. */
const standIns = {
  base_url: 'https://unset.example',
  region: 'us-east-1',
  role: 'arn:aws:iam::123456789012:role/unset',
}

/** Adds values for unset variables that begin a setting of `standIns`, such as URL in `base_url: "${URL}/v1"`. */
export function withStandIns(text: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const named = Object.entries(standIns).flatMap(([key, value]) =>
    [...text.matchAll(new RegExp(`\\b${key}: "\\$\\{(\\w+)`, 'g'))].map(([, name]) => [name!, value]),
  )
  return { ...Object.fromEntries(named), ...env }
}
