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
  at: when.describe('when it was over; of the ledger, when its debit was made'),
  account: z.object({ id: name, name }).nullable(),
  key: z
    .object({ id: name, prefix: name, label: name })
    .nullable()
    .describe('null for one of the playground, and for one whose key is not known'),
  person: name.describe('the id of the person whose key it was'),
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
  first_byte_ms: count.describe('until the first byte of its answer'),
  total_ms: count,
  attempts: count,
  source: z.enum(['memory', 'ledger']).describe('`ledger`: it is too long ago for the memory of the server'),
})

export type RequestRow = z.output<typeof requestRow>

export const needShape = named('Need', {
  id: z.string().describe('the same for as long as the line is there, on every server of the store'),
  rule: z.enum(needNames as [NeedName, ...NeedName[]]),
  severity: z.enum(severities),
  text: z.string().describe('one sentence'),
  since: when.nullable().describe('when it began, else when it was first noticed'),
  link: z.string().describe('the page of the act, below the address of the console'),
  command: z.string().describe('a command for the act; words in capitals are to be filled in'),
})

export const statusShape = named('Status', {
  version: z.string(),
  node: z.string(),
  started: when,
  store: z.enum(['sqlite', 'postgres']),
  ready: z.boolean().describe('as /readyz says it'),
  streams: z.number().describe('that run now'),
  ledger: z.object({
    writable: z.boolean().describe('false: new inference of all accounts is refused'),
    queued: z.number().describe('debits that are in memory only'),
    spooled: z.number(),
    oldest_ms: z.number().describe('how long the oldest of both has waited'),
    blocked_accounts: z
      .number()
      .describe('accounts whose new inference is refused, since debits of theirs wait for too long'),
  }),
  clock: name.describe('what is wrong with the clock that dates entries, or with that of the machine; null: nothing'),
  loop_lag_p99_ms: z.number().describe('of the last minute or so'),
  rss_bytes: z.number(),
  reporting: z.object({
    time_zone: z.string(),
    week_starts: z.string(),
    labels: z.array(z.string()).describe('the dimensions of labels'),
    credits: z.string().describe('how credits are called, such as EUR'),
    away: z
      .array(z.string())
      .optional()
      .describe('months that were detached from the ledger and are not attached; left out if none is'),
  }),
  api_url: name.describe('where clients reach the gateway, by the configuration; null: nobody has said it'),
  public_url: name.describe('where operators reach the admin listener, in the same way'),
  folding,
  config_digest: z.string().describe('of what all servers of a store should have in common'),
  heard: z
    .array(
      z.object({
        model: z.string(),
        upstream: z.string(),
        account: name,
        cause: z.string().describe('in the words of the log'),
        met_by: z.string().describe('the name of that server, and its number among those of the store'),
        until: when.nullable().describe('null: an operator has disabled it there'),
      }),
    )
    .describe('upstream accounts that other servers of the store leave alone by what they have met'),
  failing: z.array(z.string()).describe('models of whose last 20 answers at least half failed here, of 5 at least'),
  demo: z.boolean().describe('the built-in simulator answers'),
  needs: z
    .array(needShape)
    .optional()
    .describe('what an operator should act on now, the worst first: see `GET /needs`'),
})

export type Status = z.output<typeof statusShape>

export const demoShape = named('Demo', {
  offered: z.boolean().describe('it can be made, or is there: no request was billed yet'),
  made: z.boolean().describe('its file is there'),
  making: z.boolean().describe('it is being made now, which takes some seconds'),
})

export type DemoState = z.output<typeof demoShape>

/** The demo of a running server. */
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
  refusal: refusal.optional().describe('where `ok` is false, and nothing else then'),
  model: z.string().optional(),
  from: z.enum(clientWireNames).optional(),
  to: z.enum(clientWireNames).optional(),
  upstream: z.string().optional(),
  path: z.string().optional(),
  headers: z.array(z.array(z.string())).optional().describe('all but the credential'),
  body: z.string().optional().describe('exactly as it would be sent'),
  fields: z.array(z.record(z.string(), z.unknown())).optional().describe('what becomes of each field'),
  losses: z.array(loss).optional(),
  answer: z.record(z.string(), z.unknown()).optional().describe('what its client would see of the answer'),
})

export type TranslationTold = z.output<typeof translationShape>

const file = z.object({
  path: name.describe('where it belongs; null for a source text of your own'),
  language: z.string(),
  text: z.string(),
})

export const clientRow = named('Client', {
  client: z.string(),
  title: z.string(),
  wires: z.array(z.enum(clientWireNames)).readonly(),
})

export type ClientRow = z.output<typeof clientRow>

/** The settings of an agent or SDK. The key is written as `$TRIWIRE_API_KEY`, in `lines` in the syntax of the shell. */
export const setupShape = named('Setup', {
  client: z.string(),
  title: z.string(),
  wire: z.enum(clientWireNames),
  model: z.string(),
  base_url: z.string(),
  base_url_from: z
    .enum(['api_url', 'listen', 'asked'])
    .describe('the setting that it comes from; `listen`: only this machine may reach it; `asked`: from `url`'),
  files: z.array(file),
  lines: z.array(z.object({ shell: z.enum(['posix', 'fish', 'powershell']), text: z.string() })),
  steps: z.array(z.string()).readonly().describe('what a person does in its windows'),
  notes: z.array(z.string()),
})

export type Setup = z.output<typeof setupShape>
