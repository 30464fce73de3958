import { z } from 'zod'
import { clientWireNames } from '../catalog/wire-names.ts'
import { amount, folding, named, when } from './fields.ts'
import { type NeedName, needNames, severities } from './needs.ts'

/*
 * Answers about requests, the process and current events. They have no content, only names, counts and times (ruling
 * U5).
 */

const count = z.number().nullable()
const name = z.string().nullable()

/** A request. A value that is unknown or does not apply is null. */
export const requestRow = named('Request', {
  request_id: z.string(),
  at: when.describe('when the request was over; for a row from the ledger, when its debit was made'),
  account: z.object({ id: name, name }).nullable(),
  key: z
    .object({ id: name, prefix: name, label: name })
    .nullable()
    .describe('null for a request of the playground, and for a request whose key is not known'),
  person: name.describe('the id of the person who used the key'),
  labels: name.describe('such as project=apollo,team=red'),
  model: name,
  alias: name,
  client_wire: name,
  model_wire: name,
  upstream: name,
  upstream_account: name,
  outcome: z.string(),
  status: count,
  code: name,
  cause: name,
  credits: amount.nullable(),
  input_tokens: count,
  cache_read_tokens: count,
  cache_write_tokens: count,
  output_tokens: count,
  reasoning_tokens: count,
  first_byte_ms: count.describe('the time until the first byte of the answer'),
  total_ms: count,
  attempts: count,
  source: z.enum(['memory', 'ledger']).describe('`ledger`: the server no longer has the request in memory'),
})

export type RequestRow = z.output<typeof requestRow>

export const needShape = named('Need', {
  id: z.string().describe('an id that stays the same while the line exists, on every server of the store'),
  rule: z.enum(needNames as [NeedName, ...NeedName[]]),
  severity: z.enum(severities),
  text: z.string().describe('one sentence'),
  since: when.nullable().describe('when it began or, if that is not known, when it was first noticed'),
  link: z.string().describe('the page on which to act, relative to the address of the console'),
  command: z.string().describe('a command that acts on it; replace the words in capitals'),
})

export const statusShape = named('Status', {
  version: z.string(),
  node: z.string(),
  started: when,
  store: z.enum(['sqlite', 'postgres']),
  ready: z.boolean().describe('as /readyz reports it'),
  streams: z.number().describe('streams that run now'),
  ledger: z.object({
    writable: z.boolean().describe('false: new inference requests of all accounts are refused'),
    queued: z.number().describe('debits that are in memory only'),
    spooled: z.number(),
    oldest_ms: z.number().describe('how long the oldest waiting debit has waited'),
    blocked_accounts: z
      .number()
      .describe('accounts whose new inference requests are refused, because their debits have waited for too long'),
  }),
  clock: name.describe("what is wrong with the clock that dates entries, or with the machine's; null: nothing"),
  loop_lag_p99_ms: z.number().describe('the value of about the last minute'),
  rss_bytes: z.number(),
  reporting: z.object({
    time_zone: z.string(),
    week_starts: z.string(),
    labels: z.array(z.string()).describe('the dimensions of labels'),
    credits: z.string().describe('the name of a credit, such as EUR'),
    away: z
      .array(z.string())
      .optional()
      .describe('months whose entries were moved from the ledger into files; left out if there are none'),
  }),
  api_url: name.describe('where clients reach the gateway; null: the configuration does not say it'),
  public_url: name.describe('where operators reach the admin listener; null: the configuration does not say it'),
  folding,
  config_digest: z.string().describe('a digest of the settings that must be the same on all servers of a store'),
  heard: z
    .array(
      z.object({
        model: z.string(),
        upstream: z.string(),
        account: name,
        cause: z.string().describe('the cause, as the log names it'),
        met_by: z.string().describe('the name of the server that met the cause, and its number in the store'),
        until: when.nullable().describe('when that server uses it again; null: an operator has disabled it there'),
      }),
    )
    .describe('upstream accounts that this server does not use because other servers of the store met a failure there'),
  failing: z
    .array(z.string())
    .describe('models of whose last 20 answers on this server (at least 5) at least half failed'),
  demo: z.boolean().describe('whether the built-in simulator answers'),
  needs: z.array(needShape).optional().describe('what needs an operator now, the most urgent first: see `GET /needs`'),
})

export type Status = z.output<typeof statusShape>

export const demoShape = named('Demo', {
  offered: z.boolean().describe('whether the demo can be made or exists: until the first request is billed'),
  made: z.boolean().describe('whether the demo exists'),
  making: z.boolean().describe('whether the demo is being made now, which takes some seconds'),
})

export type DemoState = z.output<typeof demoShape>

/** Controls the demo of a running server. */
export type DemoDesk = {
  state(): Promise<DemoState>
  /** Makes the demo. @throws ProblemError if no demo is offered */
  make(): Promise<DemoState>
  remove(): Promise<DemoState>
}

const loss = named('Loss', { field: z.string(), what: z.string(), why: z.string() })

const refusal = z.object({
  status: z.number(),
  code: z.string(),
  param: name,
  message: z.string(),
  body: z.string().describe('the body of the error response'),
})

/** The translation of a request and of an answer, or the error response. */
export const translationShape = named('Translation', {
  ok: z.boolean(),
  refusal: refusal.optional().describe('present if `ok` is false; then no other field is'),
  model: z.string().optional(),
  from: z.enum(clientWireNames).optional(),
  to: z.enum(clientWireNames).optional(),
  upstream: z.string().optional(),
  path: z.string().optional(),
  headers: z.array(z.array(z.string())).optional().describe('all headers except the credential'),
  body: z.string().optional().describe('the body exactly as it would be sent'),
  fields: z.array(z.record(z.string(), z.unknown())).optional().describe('what happens to each field'),
  losses: z.array(loss).optional(),
  answer: z.record(z.string(), z.unknown()).optional().describe('what the client would get'),
})

export type TranslationTold = z.output<typeof translationShape>

const file = z.object({
  path: name.describe('the path of the file; null for a text that belongs in your own source code'),
  language: z.string(),
  text: z.string(),
})

export const clientRow = named('Client', {
  client: z.string(),
  title: z.string(),
  wires: z.array(z.enum(clientWireNames)).readonly(),
})

export type ClientRow = z.output<typeof clientRow>

/** The settings of an agent or SDK. Instead of a key, they contain a variable, in `lines` as the shell writes it. */
export const setupShape = named('Setup', {
  client: z.string(),
  title: z.string(),
  wire: z.enum(clientWireNames),
  model: z.string(),
  base_url: z.string(),
  base_url_from: z
    .enum(['api_url', 'listen', 'asked'])
    .describe(
      'where `base_url` comes from: the settings `api_url` or `listen` (an address that only this machine may reach), or the field `url` of this request (`asked`)',
    ),
  files: z.array(file),
  lines: z.array(z.object({ shell: z.enum(['posix', 'fish', 'powershell']), text: z.string() })),
  steps: z.array(z.string()).readonly().describe('steps that a person takes in the windows of the program'),
  notes: z.array(z.string()),
})

export type Setup = z.output<typeof setupShape>
