import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'
import { createCalendar, utc } from '../accounts/calendar.ts'
import { mayUse } from '../accounts/key-bounds.ts'
import { withoutKeys } from '../accounts/keys.ts'
import type { DeclaredLabels } from '../accounts/labels.ts'
import { didYouMean } from '../catalog/near-ids.ts'
import type { Config } from '../config/config.ts'
import { formatJsonLines, jsonLines } from '../operations/csv.ts'
import { models, pageMax } from '../operations/fields.ts'
import type { Context, Face, Operation, OperationResult, Running } from '../operations/operation.ts'
import { ProblemError, sayIssue } from '../operations/problem.ts'
import { sortedMax } from '../operations/request-list.ts'
import { operations } from '../operations/table.ts'
import { type AdminReply, adminOption, askServer } from './admin.ts'
import { explainWithout } from './explanation.ts'
import { numberFrom } from './options.ts'
import { isJson, note, print, printPieces } from './print.ts'
import { sayAgain, sayAnswer, sayLost } from './said.ts'
import { type GlobalOptions, withStore } from './store.ts'
import { tableCommands } from './table-commands.ts'

/** Adds the commands of the table of operations. Arguments and options follow from the input of each operation. */
export function addOperationCommands(program: Command): void {
  for (const one of operations) for (const face of one.cli) addFace(program, one, face)
}

function addFace(program: Command, one: Operation, face: Face): void {
  const words = face.command.split(' ')
  const last = words.pop()!
  let parent = program
  for (const word of words)
    parent =
      parent.commands.find((command) => command.name() === word) ??
      parent.command(word).description(tableCommands[word]!)
  const command = parent.command(last, { isDefault: face.isDefault === true }).description(face.text ?? one.text)
  const { shape } = one.input
  for (const said of face.arguments ?? []) {
    const name = said.replace('?', '')
    const schema = shape[name] as z.ZodType
    const shown = face.files?.includes(name) ? 'file' : name === 'request' ? 'request-id' : name
    const read = face.files?.includes(name) ? (file: string) => file : reader(schema, face, name)
    command.argument(said === name ? `<${shown}>` : `[${shown}]`, describe(schema), read)
  }
  addOptions(command, face, shape)
  if (typeof face.rows === 'number')
    command.option('--limit <count>', 'the largest number of rows', numberFrom(1, 9_999_999), face.rows)
  for (const [form, text] of Object.entries(face.forms ?? {})) command.option(`--${form}`, text)
  if (one.asks === 'server') command.option(...adminOption)
  else if (isPrintedWhole(one, face)) command.option('--csv', 'print comma-separated values')
  command.action((...args: unknown[]) => act(args.at(-1) as Command, one, face, args.slice(0, -2)))
}

/** Whether the command prints all rows, so that it can print CSV. A command with `--limit` does not. */
function isPrintedWhole({ csv }: Operation, { rows }: Face): boolean {
  return csv !== undefined && typeof rows !== 'number'
}

type Options = Pick<Face, 'options' | 'usual' | 'reads'>

/** Adds an option for each field. The field's schema checks its value. @param shape the schemas by field */
export function addOptions(command: Command, face: Options, shape: z.ZodRawShape): void {
  for (const [name, flags] of Object.entries(face.options ?? {})) {
    const schema = shape[name] as z.ZodType
    const option = toOption(flags, schema, reader(schema, face, name))
    const usual = face.usual?.[name]
    command.addOption(usual === undefined ? option : option.default(usual, usual))
  }
}

/** Returns the values that were typed for these options, by field. */
export function typedOptions(command: Command, { options = {} }: Options): Record<string, unknown> {
  const typed = command.opts<Record<string, unknown>>()
  const entries = Object.entries(options).map(([name, flags]) => [name, typed[new Option(flags).attributeName()]])
  return Object.fromEntries(entries)
}

function toOption(flags: string, schema: z.ZodType, read: (text: string) => string): Option {
  const option = new Option(flags, describe(schema))
  const choices = choicesOf(schema)
  if (choices) option.choices(choices)
  else option.argParser(read)
  if (!schema.safeParse(undefined).success) option.makeOptionMandatory()
  const outer = unwrap(schema, ({ def }) => def.type === 'optional')
  // A schema with preprocessing is a pipe, and its inner schema has the default.
  const inner = outer instanceof z.ZodPipe ? (outer.def.out as z.ZodType) : outer
  if (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault)
    option.default(inner.def.defaultValue, `${inner.def.defaultValue}`)
  return option
}

/** Returns a field's description from a wrapper such as `optional`, or else from the inner schema. */
function describe(schema: z.ZodType): string {
  const { description } = unwrap(schema, (inner) => inner.description === undefined)
  return (description ?? '').replaceAll('`', '"')
}

const wrappers: readonly string[] = ['optional', 'nullable', 'default', 'prefault']

/**
 * Returns the schema inside wrappers such as `optional`. @param isWrapper selects the wrappers to open; default: all
 */
function unwrap(schema: z.ZodType, isWrapper: (inner: z.ZodType) => boolean = () => true): z.ZodType {
  let inner = schema
  while (wrappers.includes(inner.def.type) && isWrapper(inner))
    inner = (inner as z.ZodOptional<z.ZodType>).def.innerType
  return inner
}

function choicesOf(schema: z.ZodType): string[] | undefined {
  const inner = unwrap(schema)
  return inner instanceof z.ZodEnum ? inner.options.map(String) : undefined
}

/**
 * Makes a parser that reports an invalid value at once. The parser returns the text, or what `face.reads` makes of it.
 */
function reader(schema: z.ZodType, face: Options, name: string): (text: string) => string {
  return (typed) => {
    const result = schema.safeParse(typed, { error: sayIssue })
    if (!result.success) throw new InvalidArgumentError(result.error.issues[0]!.message)
    return face.reads?.[name]?.(typed) ?? typed
  }
}

async function act(command: Command, one: Operation, face: Face, values: readonly unknown[]): Promise<void> {
  const { limit: rows, csv } = command.opts<Record<string, unknown>>()
  const names = Object.keys(face.options ?? {})
  const asked = {
    ...Object.fromEntries((face.arguments ?? []).map((said, at) => [said.replace('?', ''), values[at]])),
    ...typedOptions(command, face),
    ...face.fixed,
  }
  const form = Object.keys(face.forms ?? {}).find((name) => command.opts<Record<string, unknown>>()[name])
  if (form !== undefined) asked['form'] = form
  for (const name of face.files ?? []) asked[name] = readField(`${asked[name]}`, one.input.shape[name] as z.ZodType)
  const changes = Object.entries(asked).filter(
    ([name, value]) => value !== undefined && !one.path.includes(`{${name}}`),
  )
  if (one.kind === 'edits' && changes.length === 0) {
    const flags = names.map((name) => new Option(face.options![name]!).long)
    command.error(`error: say what is to be changed: ${flags.join(', ')}`)
  }
  try {
    if ((csv && one.csv) || (isJson(command) && one.media?.includes(jsonLines)))
      return await printRows(command, one, asked, csv)
    const answer = await answerOf(command, one, asked, (rows ?? face.rows) as number | 'all')
    if (form !== undefined) return await printPieces([`${answer}`])
    if (typeof asked['models'] === 'string') await noteUnknownModels(command, asked['models'])
    print(command, answer, () => sayAnswer(one.id, answer), sayLost(one.id, answer))
  } catch (error) {
    throw error instanceof ProblemError ? inWords(error, face) : error
  }
}

/** Reads the value of a field from a file. @throws Error with a message for people */
function readField(file: string, schema: z.ZodType): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch (error) {
    throw new Error(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  if (!isUtf8(bytes)) throw new Error(`${file} is not UTF-8: save it as UTF-8`)
  const read = schema.safeParse(bytes.toString(), { error: sayIssue })
  if (!read.success) throw new Error(`${file}: ${read.error.issues[0]!.message}`)
  return bytes.toString()
}

/**
 * Tells the person which models of the typed list are not in the catalog. This is no error, because a reload may add
 * them (NEW-8).
 */
async function noteUnknownModels(command: Command, typed: string): Promise<void> {
  let ids: string[]
  try {
    ids = [...(await readConfig(command)).catalog.models.keys()]
  } catch {
    // Commands that need the configuration report its mistakes.
    return
  }
  const unknown = (models.parse(typed) ?? []).filter((model) => !ids.some((id) => mayUse([model], id)))
  for (const model of unknown) {
    const meant = didYouMean(model, ids)
    const hint = meant ? `: ${meant}` : ', and the key cannot ask for it'
    note(command, `no model of this configuration is called ${model}${hint}`)
  }
}

/** Prints all rows of an operation, as CSV or as one line of JSON each. */
function printRows(command: Command, one: Operation, asked: object, csv: unknown): Promise<void> {
  return withStore(command, async (books, calendar) => {
    const context = { ...nobody, books, calendar, nowMs: Date.now() }
    const input = one.input.parse(asked)
    if (csv) return printPieces(one.csv!(context, input))
    const outcome = await one.run(context, input)
    if ('rows' in outcome) await printPieces(formatJsonLines(outcome.rows))
  })
}

/** Returns what the command prints: an object, or at most `rows` rows of a list. */
async function answerOf(
  command: Command,
  one: Operation,
  asked: Record<string, unknown>,
  rows: number | 'all',
): Promise<unknown> {
  const most = rows === 'all' || rows === undefined ? Number.POSITIVE_INFINITY : rows
  if (one.asks === 'server') return askRunning(command, one, asked, most)
  const work = async (context: Context) => {
    if (one.kind !== 'list') {
      const outcome = await one.run(context, one.input.parse(asked))
      return 'rows' in outcome ? { items: await Array.fromAsync(outcome.rows) } : outcome
    }
    return readPages(context, one, asked, most)
  }
  const declared = await readDeclared(command, asked)
  // The statement of a closed month keeps these words. So mistakes in the configuration are reported.
  const readCreditWords = async () => (await readConfig(command)).credits
  const running = { ...unasked, ...declared, readCreditWords }
  const outcome = await (one.asks === 'configuration'
    ? work(await withConfiguration(command))
    : withStore(command, (books, calendar) => work({ ...nobody, running, books, calendar, nowMs: Date.now() }), {
        create: one.id === 'account.create' || one.id === 'operator.create',
      }))
  if ('away' in outcome && outcome.away) note(command, sayAway(outcome.away))
  if ('items' in outcome) return outcome.items
  if ('text' in outcome) return outcome.text
  if (!('body' in outcome)) throw new Error(`${one.id} is asked of a server`)
  const again = sayAgain(one.id)
  if (outcome.isNew === false && again !== undefined) note(command, again)
  return outcome.body
}

/** Reads the configuration without its secrets. @throws ConfigError */
async function readConfig(command: Command): Promise<Config> {
  const { glanceAtConfig } = await import('../config/load.ts')
  return glanceAtConfig(command.optsWithGlobals<GlobalOptions>())
}

/** Reads declared labels and plans. The configuration is read only if the command sets labels or a plan. */
async function readDeclared(command: Command, { labels, may_choose, plan }: Record<string, unknown>) {
  const isNeeded = [labels, may_choose, plan].some((one) => one !== undefined && one !== 'none')
  const config = isNeeded ? await readConfig(command) : undefined
  return {
    declaredLabels: (): DeclaredLabels => config?.labels ?? new Map(),
    declaredPlans: () => config?.plans ?? [],
  }
}

function sayAway(months: readonly string[]): string {
  return `entries of ${months.join(', ')} are away and not listed: bring them back with triwire ledger archive attach ${months[0]}`
}

async function readPages(
  context: Context,
  one: Operation,
  asked: Record<string, unknown>,
  most: number,
): Promise<{ items: unknown[]; away: readonly string[] | undefined }> {
  const items: unknown[] = []
  let beyond: Context['beyond']
  let away: readonly string[] | undefined
  do {
    const limit = Math.min(pageMax, most - items.length)
    const input = one.input.parse('limit' in one.input.shape ? { ...asked, limit } : asked)
    const outcome: OperationResult<unknown> = await one.run({ ...context, beyond }, input)
    if (!('items' in outcome)) throw new Error(`${one.id} is no list`)
    items.push(...outcome.items)
    ;({ next: beyond, away } = outcome)
  } while (beyond && items.length < most)
  return { items, away }
}

/** Answers for operations that run in a command, in place of the parts that only a running gateway has. */
const unasked = {
  explain: () => Promise.resolve('unknown'),
  listUpstreams: async () => [],
  listModels: () => [],
  listWebhooks: async () => [],
  listNeeds: async () => [],
  heldOf: () => 0n,
  hasForeignKeys: () => false,
  heldByPeople: () => new Map(),
  // Only a server knows `sign_in.idle`. So sessions are listed until their absolute end.
  sessionIdleMs: () => Number.MAX_SAFE_INTEGER,
  readHolds: async () => new Map(),
  writeTraffic: async () => false,
} as Partial<Running> as Running

const nobody = { running: unasked, who: undefined, version: '', requestId: '', openBooks: () => Promise.reject() }

async function withConfiguration(command: Command): Promise<Context> {
  const { listModels } = await import('../operations/rows.ts')
  const { catalog } = await readConfig(command)
  const running = { ...unasked, listModels: () => listModels(catalog, Date.now()) }
  return { ...nobody, books: undefined as never, running, nowMs: Date.now(), calendar: createCalendar(utc) }
}

async function askRunning(
  command: Command,
  one: Operation,
  asked: Record<string, unknown>,
  most: number,
): Promise<unknown> {
  const inPath = new Set<string>()
  const path = one.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    inPath.add(name)
    return encodeURIComponent(`${asked[name]}`)
  })
  const fields = Object.entries(asked).filter(([name, value]) => value !== undefined && !inPath.has(name))
  const isOnePage = one.id === 'request.list' && asked['sort'] !== '-at'
  const items: unknown[] = []
  let cursor: string | null = null
  let told: AdminReply
  for (;;) {
    told = await askServer(command, `/api/v1${path}`, one.method, {
      ...Object.fromEntries(fields),
      ...('limit' in one.input.shape && { limit: `${Math.min(pageMax, most - items.length)}` }),
      ...(cursor !== null && { cursor }),
    })
    if (!('status' in told) || told.status !== 200) break
    if (told.unreached && cursor === null) note(command, `these servers could not be asked: ${told.unreached}`)
    if (one.kind !== 'list') return told.body
    const page = told.body as { items: unknown[]; next: string | null; away?: string[] }
    if (page.away) note(command, sayAway(page.away))
    items.push(...page.items)
    cursor = page.next
    if (cursor === null && isOnePage && items.length === pageMax && items.length < most)
      note(
        command,
        `no more than ${pageMax} rows are listed in this order; the console exports up to ${sortedMax} as CSV`,
      )
    if (cursor === null || items.length >= most) return items
  }
  if (one.id === 'request.explain') return explainWithout(command, `${asked['request']}`, told)
  throw new Error('trouble' in told ? told.trouble : `the server refuses: ${(told.body as { detail?: string }).detail}`)
}

/** Rewrites the message of a problem so that it names options instead of fields. */
export function inWords({ message, mistakes, cause }: ProblemError, { options = {} }: Pick<Face, 'options'>): Error {
  const flagOf = (name: string) => options[name]?.split(' ')[0]
  const said = message.replace(/`(\w+)`/g, (all, name: string) => flagOf(name) ?? all)
  const flag = flagOf(mistakes[0]?.pointer.slice(1) ?? '')
  return new Error(withoutKeys(flag === undefined || said.startsWith(flag) ? said : `${flag}: ${said}`), { cause })
}
