import { z } from 'zod'
import { weekStarts } from '../accounts/calendar.ts'
import { labelValuesMax, labelWord, labelWordCure } from '../accounts/labels.ts'
import { isShownWhole } from '../accounts/shown-text.ts'
import { webhookEvents } from '../accounts/warnings.ts'
import { count, filled, flag, oneOf, passage, text } from '../catalog/kinds.ts'
import { affinities, costFieldNames, fallbackCauses, implicitKeys, tiers } from '../catalog/model.ts'
import { longestTimeout } from '../catalog/price-list.ts'
import type { CamelCase } from '../catalog/profile.ts'
import { profileNames } from '../catalog/profiles.ts'
import { compile, routingFields } from '../catalog/routing-fields.ts'
import { modelWireNames } from '../catalog/wire-names.ts'
import { cloudKeys } from './clouds.ts'
import * as field from './fields.ts'
import { calendars, plans, prices } from './price-schema.ts'
import { signInSchema } from './sign-in.ts'
import { isGuessable } from './values.ts'

/*
 * The schema of the configuration file. It is the only source of accepted values and defaults, of `triwire.schema.json`
 * for editors, and of the table in `docs/configuration.md`. Kinds of values are in `fields.ts`, and prices in
 * `price-schema.ts`.
 */

const profile = z.union([z.enum(profileNames), field.profileMap], {
  error: `must be a map, or one of: ${profileNames.join(', ')}`,
})

const upstreamModel = filled('must not be empty').regex(/^[^*]*$/, {
  error: 'must be one model without `*`: list each model, or have `catalog import` write them',
})

const route = z.strictObject({
  name: text().describe('The name of an entry of `upstreams`.'),
  priority: count(1)
    .prefault(1)
    .describe(
      'The rank of the upstream. Upstreams with the lowest number are used first. If none of them is available, the upstreams with the next number are used.',
    ),
  weight: z
    .number({ error: 'must be a number above 0' })
    .positive({ error: 'must be a number above 0' })
    .max(1_000_000, { error: 'must be at most 1000000' })
    .prefault(1)
    .describe('The share of requests that the upstream gets, compared with others of the same priority.'),
  upstream_model: upstreamModel
    .optional()
    .describe("The model's name at this upstream. Default: the model's `upstream_model`."),
  profile: profile
    .optional()
    .describe("How this upstream differs from its wire's standard. Default: the model's profile."),
  cost: prices
    .optional()
    .describe(
      'What the provider charges at this upstream, in credits. Entries of the ledger then include this cost, which clients never see. Default: the cost of the model.',
    ),
  headers: field.headers
    .prefault({})
    .describe('Headers sent with requests for this model at this upstream. They override the headers of the upstream.'),
})

const modelId = filled('must not be empty')
  .max(256, { error: 'must have at most 256 characters' })
  .regex(/^[^\p{Cc}\p{Cf}]*$/u, { error: 'must have no control characters' })
  .regex(/^[^*]*$/, { error: 'must be one id without `*`: list each model, or have `catalog import` write them' })

const allowCure = `must be one of ${costFieldNames.join(', ')}, a field that chooses another model, provider, host or price, or a beta with its day`

/** Matches names for `allow`: a beta with its day, a field that chooses another model, or `field.member`. */
const routingNames = compile(routingFields).source.replaceAll('.*', '\\w*')
const allowedName = new RegExp(`^[a-z][a-z0-9-]*-\\d{4}-\\d{2}-\\d{2}$|${routingNames}|^\\w+\\.\\w+$`)

const model = z.strictObject({
  id: modelId.describe('The name that clients use for the model. It must be unique.'),
  also: z
    .array(modelId, { error: 'must be a list of ids' })
    .prefault([])
    .describe('Further names of the model. Each is in the list of models, and requests for it are billed as `id`.'),
  wire: oneOf(modelWireNames).describe('The wire (API format) that all upstreams of the model speak.'),
  upstream: z
    .union(
      [
        text(),
        z
          .array(z.union([text(), route], { error: 'must be the name of an upstream, or a map with its `name`' }))
          .min(1, { error: 'must name an upstream' }),
      ],
      { error: 'must be the name of an entry of `upstreams`, or a list of names and maps' },
    )
    .describe('The upstreams that serve the model: the name of an entry of `upstreams`, or a list of names and maps.'),
  upstream_model: upstreamModel.optional().describe('The name of the model at the upstream. Default: `id`.'),
  max_output_tokens: count(1).describe(
    'The largest number of output tokens. If a request asks for more, the gateway lowers the number and reports no error.',
  ),
  context_window: count(1)
    .optional()
    .describe(
      'The most tokens that input and output may have together. The gateway does not enforce this limit. `triwire setup` writes it into the settings of agents.',
    ),
  cost: prices
    .optional()
    .describe("What the model's provider charges, in credits. Without this list, the ledger has no costs."),
  prices: prices.describe(
    'What the gateway charges, in credits per million tokens: decimals in quotes, with at most 9 decimal places. A list has one row for each date on which prices change.',
  ),
  profile: profile
    .optional()
    .describe(
      'How the upstream differs from the standard of its wire: the name of a profile, or a map of its keys. Default: the plain profile of the wire.',
    ),
  allow: z
    .array(
      z.union([z.enum(costFieldNames), z.string().regex(allowedName, { error: allowCure })], { error: allowCure }),
      { error: 'must be a list of fields and betas' },
    )
    .prefault([])
    .describe(
      `Request fields and betas that may pass although they raise or change the price. Without this setting, such fields are dropped. Fields that cost beyond the token price: ${listed(costFieldNames)}. Fields that choose another model, provider, host or price: ${listed(routingFields)}. \`*\` stands for any letters; name a field in full to let it pass. Betas are named with their day.`,
    ),
  hosted_tools: passage
    .prefault('pass')
    .describe(
      "Whether requests in the model's own wire may use tools that the provider runs, such as web search: they are passed on, or the request is refused.",
    ),
  remote_media: passage
    .optional()
    .describe(
      "Whether requests in the model's own wire may contain addresses of media, which the upstream would fetch. Default: what the profile says, which is `refuse` for self-hosted servers.",
    ),
  stored_files: passage
    .optional()
    .describe(
      "Whether requests in the model's own wire may contain ids of files and prompts that the provider stores. Default: what the profile says, which is `pass`.",
    ),
  affinity: oneOf(affinities)
    .prefault('alike')
    .describe(
      'How an upstream account is chosen for a request that names no conversation. `alike`: requests that begin alike go to the same account, so that its prompt cache is used. `named`: the account is chosen at random, and only named conversations stay with one account.',
    ),
  implicit_key: oneOf(implicitKeys)
    .prefault('off')
    .describe(
      'The prompt cache key that the gateway sends to the provider, as a digest, if a request has none and its wire has a field for it. `account`: a key for each customer, so that customers share no cache. `conversation`: also a separate key for conversations that begin differently.',
    ),
})

const chain = z.strictObject({
  id: modelId.describe('The name that clients use for the chain. It must be unique among models and chains.'),
  chain: z
    .array(modelId, { error: 'must be a list of ids of models' })
    .min(2, { error: 'must name two models at least' })
    .max(4, { error: 'must name four models at most' })
    .describe(
      'The ids of the models that may answer, the first choice first. Each model may appear once, and a chain cannot contain a chain.',
    ),
  when: z
    .array(oneOf(fallbackCauses), { error: `must be a list of ${fallbackCauses.join(', ')}` })
    .min(1, { error: 'must name a cause' })
    .prefault(['capacity', 'unavailable'])
    .describe(
      'The causes for which the next model is asked. `capacity`: all accounts of the model are at their limits. `unavailable`: none of them can be reached or works. `over_long`: the prompt is too long for the model. `budget`: the request may cost more than is left of the budget of the key or its person.',
    ),
  chain_return: field
    .duration('0ms', '7d')
    .optional()
    .describe(
      'How long after its last request a conversation stays with the model that answered it. Default: the `cache_life` of that model.',
    ),
})

function listed(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ')
}

const catalog = z.strictObject({
  pinned: z.iso
    .date({ error: 'must be a day such as 2026-11-01' })
    .describe('The day on which you fixed this list. Clients see it as `created` of each model in the list of models.'),
  owner: filled('must not be empty')
    .prefault('triwire')
    .describe('The owner that clients see as `owned_by` of each model in the list of models.'),
  models: z
    .array(z.union([model, chain], { error: 'must be a map of keys, such as `id`, `wire`, `upstream` and `prices`' }), {
      error: 'must be a list of models',
    })
    .min(1, { error: 'must list a model; leave out `catalog` to serve the built-in models' })
    .describe(
      'The models, and chains of models, that the gateway serves. Clients see them in this order in the list of models.',
    ),
})

/** The settings for the key of an account. Exactly one of them must be set. */
const keySources = ['key', 'key_file', 'key_command', 'aws', 'google', 'azure'] as const

const account = z
  .strictObject({
    name: filled('must not be empty').describe('The name of the account in logs and metrics.'),
    key: field.providerKey.optional().describe('The API key at the provider. Alternatives: `key_file`, `key_command`.'),
    key_file: field.filePath
      .optional()
      .describe('A file with the key and nothing else. It is read again when it changes.'),
    key_command: z
      .array(filled('must be text'), { error: 'must be a list: the program and its arguments' })
      .min(1, { error: 'must name a program' })
      .optional()
      .describe('A program with its arguments. What it prints is the key. It is run without a shell.'),
    key_lifetime: field
      .duration('1s', '20d')
      .optional()
      .describe('How long a key from `key_command` is used before the program is run again. Default: 10m.'),
    enabled: flag.prefault(true).describe('`false`: the account gets no requests, but keeps its place in the pool.'),
    expected_tiers: z
      .array(oneOf(tiers), { error: `must be a list of ${tiers.join(', ')}` })
      .optional()
      .describe(
        'Service tiers at which the provider may serve the account even if a request does not ask for them, such as a default of its project. The credit set aside for a request (its hold) then uses their prices. Default: the base tier and the tier that a request asks for.',
      ),
    isolation: z
      .array(filled('must be the name or the id of an account of triwire'), {
        error: 'must be a list of names or ids of accounts of triwire',
      })
      .min(1, { error: 'must name an account; leave it out to serve every account' })
      .superRefine((names, context) => {
        for (const [index, name] of names.entries())
          if (names.indexOf(name) < index) field.complain(context, 'is listed already; name it once', [index])
      })
      .optional()
      .describe(
        'The accounts of triwire, by name or id, for which this upstream account is reserved. If a model has accounts reserved for a customer, only those accounts serve the customer.',
      ),
    ...cloudKeys,
  })
  .superRefine((account, context) => {
    const said = keySources.filter((source) => account[source] !== undefined)
    if (said.length !== 1)
      field.complain(context, `must have one and no more of ${keySources.map((one) => `\`${one}\``).join(', ')}`)
    else if (account.key_lifetime !== undefined && account.key_command === undefined)
      field.complain(context, 'is for `key_command`; leave it out', ['key_lifetime'])
  })

const upstream = z
  .strictObject({
    base_url: field.baseUrl.describe(
      "The address of the upstream. If it has no path, the gateway adds the full path of the wire (`/v1/chat/completions`, …). If it has a path, the gateway adds only the part of the wire's path that follows `/v1`. On messages, the gateway first adds `/v1` if the path does not end in it.",
    ),
    paths: z
      .partialRecord(z.enum(modelWireNames), field.requestPaths, { error: 'must be a map of paths by wire' })
      .prefault({})
      .describe(
        'The paths of requests by wire, from the root of the host. They replace the paths that are derived from `base_url`. `{model}` stands for the name of the model at the upstream. A map of `whole` and `stream` has a path for each form of the answer.',
      ),
    query: field.textMap.prefault({}).describe('Query parameters that are added to every path, such as `api-version`.'),
    key_header: field.keyHeader
      .optional()
      .describe(
        'The header in which the key is sent, such as `api-key`. In `authorization` the key follows the word `Bearer`. Default: `x-api-key` on messages, and `authorization` on the other wires.',
      ),
    ...field.egressKeys('the upstream'),
    accounts: z
      .array(account, { error: 'must be a list of accounts' })
      .min(1, { error: 'must have an account' })
      .superRefine((accounts, context) => {
        for (const [index, { name }] of accounts.entries()) {
          const first = accounts.findIndex((other) => other.name === name)
          if (first < index)
            field.complain(context, `is also the name of accounts[${first}]; give each its own`, [index, 'name'])
        }
      })
      .describe(
        'The accounts at the provider. Requests are spread over them. Each conversation stays with one account.',
      ),
    messages_headers: oneOf(['anthropic', 'msgwire'])
      .prefault('anthropic')
      .describe('How the version and beta headers of the messages wire are spelled in requests to this upstream.'),
    headers: field.headers
      .prefault({})
      .describe(
        'Headers sent with every request to the upstream. They replace headers of the gateway, such as `user-agent`.',
      ),
    reuse: flag
      .prefault(true)
      .describe('Whether connections are reused. `false`: each request opens a new connection.'),
  })
  .superRefine(({ key_header: keyHeader, accounts }, context) => {
    for (const account of accounts) {
      const kind = (['aws', 'google', 'azure'] as const).find((one) => account[one] !== undefined)
      if (kind === undefined) continue
      if (keyHeader !== undefined)
        field.complain(context, `cannot be set with \`${kind}\`, which has a header of its own; leave it out`, [
          'key_header',
        ])
    }
  })
  .superRefine(({ key_header: keyHeader, headers }, context) => {
    for (const name of Object.keys(headers))
      if (name.toLowerCase() === keyHeader)
        field.complain(context, 'is the `key_header`; leave it out', ['headers', name])
  })

const tls = z.strictObject({
  cert: field.filePath.describe(
    "A file with the server's certificate in PEM, followed by the certificates of its authorities. A reload reads it again.",
  ),
  key: field.filePath.describe(
    'A file with the private key of the certificate in PEM, without a passphrase. A reload reads it again.',
  ),
})

const limits = z.strictObject({
  requests_per_minute: count(1).prefault(300).describe('The most requests of one account in a window of 60 seconds.'),
  failed_auth_per_minute: count(1).prefault(10).describe('The most failed authentications of one address in 60 s.'),
  body_bytes_max: count(1024).prefault(5_242_880).describe('The largest request body, in bytes.'),
  connections_max: count(1).prefault(20_000).describe('The most connections of clients that may be open.'),
})

const billing = z.strictObject({
  cut_answers: oneOf(['bill', 'waive'])
    .prefault('bill')
    .describe('Whether an answer is billed if the upstream breaks it off after output was delivered.'),
  read_on: field
    .duration('0ms', '24h')
    .prefault('10s')
    .describe(
      'How long the gateway continues to read a stream that its client has left, if the stream reports its token counts only at its end. This matters for hidden reasoning and for cheaper cached input. `0`: it does not continue.',
    ),
  hold_output_tokens: z
    .union([z.literal('cap'), count(0)], { error: 'must be a whole number of tokens, or cap' })
    .prefault(1024)
    .describe(
      'The most output tokens for which credit is set aside (held) when a request begins. `cap`: as many as the request allows. Choose `cap` if credit is prepaid, because otherwise an account can end far below zero.',
    ),
})

const timeouts = z.strictObject({
  headers: field.duration('1ms', '24h').prefault('15s').describe('How long a client may take to send its headers.'),
  body: field.duration('1ms', '24h').prefault('60s').describe('How long a client may take to send its whole body.'),
  body_gap: field.duration('1ms', '24h').prefault('20s').describe('The longest pause while a client sends its body.'),
  linger: field
    .duration('1ms', '24h')
    .prefault('5s')
    .describe(
      'After a refusal: how long the gateway continues to read the request body, up to 32 MiB, so that the client receives the refusal.',
    ),
  keep_alive: field
    .duration('1ms', '24h')
    .prefault('65s')
    .describe('How long an idle client connection stays open, in whole seconds.'),
  write_stall: field.duration('1ms', '24h').prefault('60s').describe('How long a client may stop reading an answer.'),
  connect: field.duration('1ms', '24h').prefault('5s').describe('The time limit for connecting to an upstream.'),
  first_byte_stream: field
    .duration('1ms', '7d')
    .prefault('300s')
    .describe('How long an upstream may take to begin a stream.'),
  first_byte_json: field
    .duration('1ms', '7d')
    .prefault('600s')
    .describe('How long an upstream may take to begin a JSON answer.'),
  idle: field.duration('1ms', '24h').prefault('120s').describe('The longest silence of an upstream during an answer.'),
  progress: field.duration('1ms', '24h').prefault('300s').describe('How long an upstream may send only keep-alives.'),
  total: field.duration('1ms', longestTimeout).prefault('60m').describe('The time limit for a whole answer.'),
  settle_window: field
    .duration('0ms', longestTimeout)
    .prefault('30s')
    .describe('How long the gateway waits for the token counts of an upstream after a client left without an answer.'),
  settle_deadline: field
    .duration('1ms', '24h')
    .prefault('5s')
    .describe('How long the store may take to save a debit before the debit is kept in a file instead (spooled).'),
  drain_delay: field
    .duration('0ms', '24h')
    .prefault('5s')
    .describe('After SIGTERM: how long the server reports that it is not ready but still accepts requests.'),
  drain_deadline: field
    .duration('0ms', '7d')
    .prefault('300s')
    .describe('After SIGTERM: how long running requests may take.'),
  ping: field.duration('1ms', '24h').prefault('10s').describe('How long a stream may be silent before a keep-alive.'),
})

const sealKeyCure = 'must be 32 bytes in base64, 8 of them different; `openssl rand -base64 32` makes one'
const metricsTokenCure =
  'must be at least 16 characters without blanks, 8 of them different; `openssl rand -hex 32` makes some'

const metrics = z.strictObject({
  token: text()
    .regex(/^[!-~]{16,}$/, { error: metricsTokenCure, abort: true })
    .refine((value) => !isGuessable(value), { error: metricsTokenCure })
    .optional()
    .describe(
      'The token that a scraper must send as `authorization: Bearer`. Default: no token, which is possible only on loopback.',
    ),
  accounts: flag
    .prefault(false)
    .describe('Whether there are metrics for each account, labelled with its name. At most 10,000 accounts have them.'),
  keys: flag
    .prefault(false)
    .describe(
      'Whether there are metrics for each key with a budget, labelled with the label and first characters of the key. At most 10,000 keys have them.',
    ),
})

const otlp = z.strictObject({
  endpoint: field.collectorUrl.describe(
    'The address at which a collector accepts OTLP over HTTP, such as `http://127.0.0.1:4318`. The gateway adds `/v1/traces` and `/v1/metrics`.',
  ),
  headers: field.headersToCollector.prefault({}).describe('Headers sent to the collector, such as `authorization`.'),
  interval: field.duration('10ms', '24h').prefault('5s').describe('How often spans are sent.'),
  metrics_interval: field.duration('10ms', '24h').prefault('60s').describe('How often metrics are sent.'),
})

const telemetry = z.strictObject({
  otlp: otlp
    .optional()
    .describe(
      "Sends traces and metrics to an OpenTelemetry collector. OpenTelemetry's environment variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, …) take precedence.",
    ),
  genai: oneOf(['standard', 'compat'])
    .prefault('standard')
    .describe('Which `gen_ai` metrics are sent. `compat` adds the older `gen_ai.client.token.usage`.'),
  propagate: flag
    .prefault(false)
    .describe('Whether requests to upstreams carry the id of the trace in the header `traceparent`.'),
})

const reporting = z.strictObject({
  time_zone: field.timeZone
    .prefault('UTC')
    .describe(
      'The time zone in which days, weeks and months of budgets and reports begin: an IANA name such as `Europe/Berlin`. The store records it; `triwire reporting rezone` changes it.',
    ),
  week_starts: oneOf(weekStarts).prefault('monday').describe('The first day of a week.'),
  keep: count(1, 1_200)
    .prefault(13)
    .describe('For how many whole months the figures of reports are kept. The ledger itself is kept for ever.'),
})

const shown = (most: number) =>
  text().refine(
    (value) =>
      value === '' ||
      value
        .trimEnd()
        .split('\n')
        .every((line) => isShownWhole(line, most)),
    {
      error: `must have lines of 1 to ${most} visible characters`,
    },
  )

const credits = z.strictObject({
  symbol: shown(8).prefault('').describe('The symbol before amounts on statements, such as `€`.'),
  name: shown(40).prefault('credits').describe('The name of a credit, such as `EUR` if one credit is worth one euro.'),
  seller: shown(200).prefault('').describe('The seller on statements: name and address, in one or more lines.'),
})

const log = z.strictObject({
  level: oneOf(['info', 'error'])
    .prefault('info')
    .describe('`info` logs a line for each request, `error` only errors.'),
  format: oneOf(['auto', 'json', 'pretty'])
    .prefault('auto')
    .describe('`auto`: pretty on a terminal, and otherwise JSON.'),
})

const belowCure = 'must be a decimal of at most 9 places in quotes, such as "5": credits'

const webhook = z
  .strictObject({
    url: field.webhookUrl.describe(
      'The address to which messages are sent, `https://…`. An `http://…` address outside private networks gets a warning. Redirects are not followed.',
    ),
    secret: field.webhookSecret.describe(
      'The secret with which messages are signed: `whsec_` and base64, or at least 16 characters.',
    ),
    events: z
      .array(oneOf(webhookEvents), { error: 'must be a list of events' })
      .min(1, { error: 'must name an event' })
      .optional()
      .describe('The events for which messages are sent. Default: all except `needs_changed`.'),
    ...field.egressKeys('the receiver'),
    below: field
      .decimal(belowCure)
      .refine((nanos) => nanos > 0n, { error: 'must be more than 0' })
      .optional()
      .describe(
        'A `credit_low` message is sent when the balance of an account falls below this number of credits. An account with its own levels (`account set --warn`) uses only its own levels. Without `below`, only such accounts cause the message.',
      ),
  })
  .superRefine(({ events, below }, context) => {
    if (events && !events.includes('credit_low') && below !== undefined)
      field.complain(context, 'is for `credit_low`; add it to `events`', ['below'])
  })

export const configSchema = z.strictObject({
  listen: field.address.prefault('127.0.0.1:8080').describe('The address for clients. Port 0 takes any free port.'),
  tls: tls.optional().describe('TLS (1.2 or later) for clients. Default: plain HTTP, for use behind a proxy with TLS.'),
  api_url: field.clientUrl
    .optional()
    .describe(
      'The address at which clients reach the gateway, `https://host` with or without a path. `setup`, the console and the admin API show it to people. A final `/v1` is removed. Default: the address of `listen`, which other machines may not reach.',
    ),
  own_pages: flag
    .prefault(false)
    .describe(
      'Whether `/console/` on the public listener shows each person with a key or a session their own usage. People open it at `api_url`.',
    ),
  explain_upstream_text: flag
    .prefault(true)
    .describe(
      'Whether `explain` shows operators the error text of a provider. The text is kept in memory only, without secrets, and has at most 400 characters. Parts that repeat 20 characters of the request are removed.',
    ),
  admin_listen: field.address
    .prefault('127.0.0.1:8081')
    .describe(
      'The address of the admin listener, which serves health, readiness, metrics, the admin API and the console. If it is not a loopback address and `admin.tls` is not set, it serves only health, readiness and metrics. The admin API and the console are then served on loopback, at the next port.',
    ),
  admin: z
    .strictObject({
      public_url: field.publicUrl
        .optional()
        .describe(
          'The address at which people reach the admin listener, `https://host` with or without a path. The listener then also accepts requests for this host, and its cookies are sent over TLS only. Default: it accepts loopback names and the names of its certificate.',
        ),
      tls: tls
        .optional()
        .describe(
          'TLS (1.2 or later) on the admin listener. Default: plain HTTP. If the address is not loopback, the listener then serves only health, readiness and metrics.',
        ),
      replica_url: field.publicUrl
        .optional()
        .describe(
          'With PostgreSQL: the address at which servers of the same store on other machines reach this admin listener, `https://host:port`. Each server has its own address. It needs `admin.tls` with a certificate that the other servers trust. Default: only servers on this machine reach the listener, through loopback.',
        ),
    })
    .refine(({ replica_url, tls }) => replica_url === undefined || tls !== undefined, {
      path: ['replica_url'],
      error: 'needs admin.tls: what servers tell each other is sent over TLS only',
    })
    .prefault({})
    .describe('Settings of the admin listener.'),
  sign_in: signInSchema
    .optional()
    .describe(
      'Lets people sign in at the identity provider of their organisation, so that they and their agents need no keys. Default: off. A change of the provider needs a restart.',
    ),
  store: field.storePlace
    .prefault('./data/triwire.db')
    .describe(
      'The store of accounts, keys and the ledger: a SQLite file, or `postgres://user@host/database` for a database that replicas share. The default is relative to the working folder.',
    ),
  state_dir: field.folderPath
    .optional()
    .describe(
      'The folder for debits that the store cannot accept at the moment. With PostgreSQL it is required: a separate folder for each server, on a disk that survives restarts. With SQLite it is the folder of the store.',
    ),
  catalog: catalog
    .optional()
    .describe('The models that the gateway serves. Default: built-in models, which the built-in simulator answers.'),
  calendars: calendars
    .prefault({})
    .describe('Lists of days, such as public holidays, on which bands (hours with other prices) need not apply.'),
  plans: plans
    .prefault({})
    .describe(
      'Price plans for accounts (`account create NAME --plan gold`): a factor for all prices, or prices of single models. A plan is applied to the price that results from band, tier and step.',
    ),
  ledger: z
    .strictObject({ form: z.literal(3, { error: 'must be 3' }).describe('The form of entries. Only 3 can be set.') })
    .optional()
    .describe(
      'With `{ form: 3 }`, entries of the ledger always record the costs that answers report. After the first such entry, older versions of triwire can no longer use the store.',
    ),
  labels: z
    .record(
      z.string().regex(labelWord, { error: labelWordCure }),
      z
        .array(text(labelWordCure).regex(labelWord, { error: labelWordCure }), { error: 'must be a list of values' })
        .min(1, { error: 'must have a value' }),
    )
    .refine((labels) => Object.values(labels).flat().length <= labelValuesMax, {
      error: `must have ${labelValuesMax} values at most, of all dimensions together`,
    })
    .prefault({})
    .describe(
      'The labels that requests may have, by dimension, such as `project: [apollo, gemini]`. A key has labels, and it may let its client choose others with the header `x-triwire-labels`.',
    ),
  upstreams: z
    .record(
      z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, { error: 'must be letters, digits, and . _ -' }),
      upstream,
      { error: 'must be a map of upstreams by name' },
    )
    .prefault({})
    .describe('The servers that answer for models, by name.'),
  limits: limits.prefault({}).describe('Limits for clients.'),
  billing: billing.prefault({}).describe('What is billed in cases that you can decide.'),
  timeouts: timeouts
    .prefault({})
    .describe('Time limits, such as `500ms`, `30s`, `5m`, `1h`, `1d`. A plain number is in ms.'),
  trusted_proxies: z
    .array(field.network, { error: 'must be a list of addresses or CIDR ranges' })
    .prefault([])
    .describe('Addresses or CIDR ranges of proxies whose header `x-forwarded-for` is trusted.'),
  seal_key: text()
    .regex(/^[A-Za-z0-9+/]{43}=?$/, { error: sealKeyCure, abort: true })
    .refine((value) => !isGuessable(Buffer.from(value, 'base64')), { error: sealKeyCure })
    .optional()
    .describe(
      'The key that encrypts signatures of models that pass through clients. With SQLite the default is a key that is made once and kept beside the store. With PostgreSQL it is required, and must be the same for all replicas.',
    ),
  headers: z
    .strictObject({
      balance: flag.prefault(true).describe("Whether answers have the account's balance in `x-triwire-balance`."),
    })
    .prefault({})
    .describe('Additional headers of answers.'),
  reporting: reporting
    .prefault({})
    .describe('The days of budgets and reports. One time zone applies to the whole store. A change needs a restart.'),
  webhooks: z
    .array(webhook, { error: 'must be a list of webhooks' })
    .max(20, { error: 'must be at most 20' })
    .prefault([])
    .describe(
      'Addresses that get messages about low credit, budgets, upstreams and problems of the ledger. A change needs a restart.',
    ),
  credits: credits.prefault({}).describe('The name of credits, and the seller, on statements.'),
  log: log.prefault({}).describe('The log on stderr.'),
  telemetry: telemetry
    .prefault({})
    .describe('Traces and metrics for OpenTelemetry, sent only if an address is set. A change needs a restart.'),
  metrics: metrics.prefault({}).describe('Settings of `/metrics` on the admin listener, which Prometheus reads.'),
})

/** The configuration file after the checks, with defaults. Its keys are named as in the file. */
export type ConfigFile = z.output<typeof configSchema>
/** The settings of a map under their names in the code: in camelCase, and ending with the unit. */
export type SettingsInCode<Settings, Unit extends string = ''> = {
  [Key in keyof Settings as `${CamelCase<Key & string>}${Unit}`]: Settings[Key]
}

export type ModelEntry = z.output<typeof model>
export type ChainEntry = z.output<typeof chain>
export type RouteEntry = z.output<typeof route>

/** Returns the JSON Schema of the file after variables are replaced. */
export function jsonSchema(): Record<string, unknown> {
  return withTitle(z.toJSONSchema(configSchema, { io: 'input' }))
}

/** A text with a variable. Editors accept such a text instead of every number, flag, enum and pattern. */
const reference = { type: 'string', pattern: '\\$\\{', description: 'Text with a variable that is replaced.' }

/** Returns the JSON Schema of the file as people write it, with variables. Editors use it. */
export function editorSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(configSchema, {
    io: 'input',
    override({ jsonSchema: node, path }) {
      if (!isNarrow(node) || path.includes('propertyNames')) return
      const { description, default: usual, ...rule } = node
      for (const name of Object.keys(rule)) Reflect.deleteProperty(node, name)
      node.anyOf = [rule, { $ref: '#/$defs/reference' }]
    },
  })
  return { ...withTitle(schema), $defs: { reference } }
}

function withTitle({ $schema, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return { $schema, title: 'triwire configuration', ...rest }
}

function isNarrow({ type, enum: words, pattern, const: word }: z.core.JSONSchema.BaseSchema): boolean {
  if (type === 'string') return [words, pattern, word].some((limit) => limit !== undefined)
  return type === 'integer' || type === 'number' || type === 'boolean'
}
