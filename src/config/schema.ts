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
import { cloudKeys, placeMistakes } from './clouds.ts'
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
  priority: count(1).prefault(1).describe('Lower ones are asked first, higher ones when nobody there can be.'),
  weight: z
    .number({ error: 'must be a number above 0' })
    .positive({ error: 'must be a number above 0' })
    .max(1_000_000, { error: 'must be at most 1000000' })
    .prefault(1)
    .describe("The upstream's share of the requests among those of its priority."),
  upstream_model: upstreamModel.optional().describe("What this upstream calls the model. Default: the model's."),
  profile: profile.optional().describe("This upstream's quirks. Default: the model's."),
  cost: prices
    .optional()
    .describe(
      "What the provider charges here, in credits. Entries of the ledger then have their cost, which clients are never shown. Default: the model's.",
    ),
  headers: field.headers
    .prefault({})
    .describe("Headers sent with this model's requests here; they win over the upstream's."),
})

const modelId = filled('must not be empty')
  .max(256, { error: 'must have at most 256 characters' })
  .regex(/^[^\p{Cc}\p{Cf}]*$/u, { error: 'must have no control characters' })
  .regex(/^[^*]*$/, { error: 'must be one id without `*`: list each model, or have `catalog import` write them' })

const allowCure = `must be one of ${costFieldNames.join(', ')}, a field that chooses another model, provider, host or price, or a beta with its day`

/** Matches a beta, a request field that chooses another model, or a member of such a field that a profile names. */
const routingNames = compile(routingFields).source.replaceAll('.*', '\\w*')
const allowedName = new RegExp(`^[a-z][a-z0-9-]*-\\d{4}-\\d{2}-\\d{2}$|${routingNames}|^\\w+\\.\\w+$`)

const model = z.strictObject({
  id: modelId.describe('What clients name. Unique.'),
  also: z
    .array(modelId, { error: 'must be a list of ids' })
    .prefault([])
    .describe('Further ids of the same model. Each is in the models list; all are billed as `id`.'),
  wire: oneOf(modelWireNames).describe('The wire its upstreams speak, all of them.'),
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
    .describe('Who serves it: the name of an entry of `upstreams`, or a list of them.'),
  upstream_model: upstreamModel.optional().describe('What the upstream calls it. Default: `id`.'),
  max_output_tokens: count(1).describe('The most output tokens; a larger wish is lowered to it without a word.'),
  context_window: count(1)
    .optional()
    .describe('Tokens that input and output have together. Not enforced; `triwire setup` tells it to agents.'),
  cost: prices
    .optional()
    .describe('What its providers charge, in credits. Default: none, and the ledger keeps no costs.'),
  prices: prices.describe(
    'Credits per million tokens: decimals in quotes, at most 9 places. A list has a row for each date on which they change.',
  ),
  profile: profile
    .optional()
    .describe("The upstream's quirks: a named profile, or a map of them. Default: the plain profile of its wire."),
  allow: z
    .array(
      z.union([z.enum(costFieldNames), z.string().regex(allowedName, { error: allowCure })], { error: allowCure }),
      { error: 'must be a list of fields and betas' },
    )
    .prefault([])
    .describe(
      `Fields that cost beyond the token price (${listed(costFieldNames)}), fields that choose another model, provider, host or price (${listed(routingFields)}; \`*\` is any letters, and what passes is named in full) and betas that do, and may pass; others of them are dropped.`,
    ),
  hosted_tools: passage
    .prefault('pass')
    .describe("The provider's own tools, such as web search, on this model's own wire."),
  remote_media: passage
    .optional()
    .describe(
      "Addresses of media in requests of this model's own wire, which its upstream would fetch. Default: the profile's; `refuse` for self-hosted servers.",
    ),
  stored_files: passage
    .optional()
    .describe(
      "Ids of files and prompts that the provider stores, in requests of this model's own wire. Default: the profile's, `pass`.",
    ),
  affinity: oneOf(affinities)
    .prefault('alike')
    .describe(
      'How requests that name no conversation find one of several upstream accounts: by what they have in common, so that prompt caches are used (`alike`), or at random (`named`: only named conversations stay).',
    ),
  implicit_key: oneOf(implicitKeys)
    .prefault('off')
    .describe(
      'The key for the prompt cache of the provider where a request has none, on wires with a field for it: `account` keeps the caches of customers apart, `conversation` those of conversations that open differently as well. It is sent as a digest.',
    ),
})

const chain = z.strictObject({
  id: modelId.describe('What clients name. Unique among models and chains.'),
  chain: z
    .array(modelId, { error: 'must be a list of ids of models' })
    .min(2, { error: 'must name two models at least' })
    .max(4, { error: 'must name four models at most' })
    .describe(
      'The models that may answer, by their ids, the first choice first. No one is named twice, and none is a chain.',
    ),
  when: z
    .array(oneOf(fallbackCauses), { error: `must be a list of ${fallbackCauses.join(', ')}` })
    .min(1, { error: 'must name a cause' })
    .prefault(['capacity', 'unavailable'])
    .describe(
      'Why the next one is asked: all places are full (`capacity`), none is reached or works (`unavailable`), the prompt is too long for it (`over_long`), the budget of the key or its person would not bear it (`budget`).',
    ),
  chain_return: field
    .duration('0ms', '7d')
    .optional()
    .describe(
      'How long a conversation stays with the model that answered it, after its last request. Default: the `cache_life` of that model.',
    ),
})

function listed(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ')
}

const catalog = z.strictObject({
  pinned: z.iso
    .date({ error: 'must be a day such as 2026-11-01' })
    .describe('The day the list was pinned: `created` on every row of the models list.'),
  owner: filled('must not be empty').prefault('triwire').describe('`owned_by` on every row of the models list.'),
  models: z
    .array(z.union([model, chain]), { error: 'must be a list of models' })
    .min(1, { error: 'must list a model; leave out `catalog` to serve the built-in models' })
    .describe('What is served, in the order it is listed: models, and chains of them.'),
})

/** The settings for the key of an account. Exactly one of them must be set. */
const keySources = ['key', 'key_file', 'key_command', 'aws', 'google', 'azure'] as const

const account = z
  .strictObject({
    name: filled('must not be empty').describe('For logs and metrics.'),
    key: field.providerKey.optional().describe('The API key at the provider. Or `key_file`, or `key_command`.'),
    key_file: field.filePath
      .optional()
      .describe('A file that holds the key and nothing else. It is read again when it changes.'),
    key_command: z
      .array(filled('must be text'), { error: 'must be a list: the program and its arguments' })
      .min(1, { error: 'must name a program' })
      .optional()
      .describe('A program and its arguments, run without a shell: the key is what it prints.'),
    key_lifetime: field
      .duration('1s', '20d')
      .optional()
      .describe('How long a key of `key_command` is used before it is run again. Default: 10m.'),
    enabled: flag.prefault(true).describe('`false`: it is asked for nothing, and keeps its place in the pool.'),
    expected_tiers: z
      .array(oneOf(tiers), { error: `must be a list of ${tiers.join(', ')}` })
      .optional()
      .describe(
        'Tiers that the account may be served by without being asked, such as a default of its project: holds then take their prices. Default: the base, and the tier that a request asks for.',
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
        'Accounts of triwire, by name or id, that it is reserved for. Where a model has accounts that are reserved for a customer, the customer is served by those alone.',
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
      "Where it is. A bare host gets the wire's whole path (`/v1/chat/completions`, …); a path in it is taken as it stands, and what is behind `/v1` is added to it. On messages `/v1` is added too where it does not end so.",
    ),
    paths: z
      .partialRecord(z.enum(modelWireNames), field.requestPaths, { error: 'must be a map of paths by wire' })
      .prefault({})
      .describe(
        "By wire: where its requests go, from the host's root, whatever path `base_url` has. `{model}` stands for what the upstream calls the model. A map of `whole` and `stream` has a path for each form of the answer.",
      ),
    query: field.textMap.prefault({}).describe('What is added to every path as a query, such as `api-version`.'),
    key_header: field.keyHeader
      .optional()
      .describe(
        "The header that the key is sent in, such as `api-key`; in `authorization` with `Bearer` before it. Default: the wire's, `x-api-key` on messages, else `authorization`.",
      ),
    proxy: field.proxyUrl
      .optional()
      .describe(
        'The proxy it is asked through, `http://user:password@host:port`; `none`: directly. Default: what `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say.',
      ),
    ca_file: field.filePath
      .optional()
      .describe("Certificates in PEM that are trusted for it, and for a proxy before it, instead of the system's."),
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
      .describe('The accounts that pay there. Requests are spread over them, a conversation stays with one.'),
    messages_headers: oneOf(['anthropic', 'msgwire'])
      .prefault('anthropic')
      .describe('How the version and beta headers of the messages wire are spelled towards it.'),
    headers: field.headers.prefault({}).describe('Headers sent with every request.'),
    reuse: flag.prefault(true).describe('`false`: each request has a connection of its own, which has to be opened.'),
  })
  .superRefine(({ base_url: baseUrl, key_header: keyHeader, accounts }, context) => {
    for (const [index, account] of accounts.entries()) {
      const kind = (['aws', 'google', 'azure'] as const).find((one) => account[one] !== undefined)
      if (kind === undefined) continue
      if (keyHeader !== undefined)
        field.complain(context, `cannot be set with \`${kind}\`, which has a header of its own; leave it out`, [
          'key_header',
        ])
      if (account.aws)
        for (const { key, message } of placeMistakes(baseUrl, account.aws))
          field.complain(context, message, ['accounts', index, 'aws', key])
    }
  })
  .superRefine(({ key_header: keyHeader, headers }, context) => {
    for (const name of Object.keys(headers))
      if (name.toLowerCase() === keyHeader)
        field.complain(context, 'is the `key_header`; leave it out', ['headers', name])
  })

const tls = z.strictObject({
  cert: field.filePath.describe(
    "The server's certificate in PEM, those of its authorities behind it. Read again by a reload.",
  ),
  key: field.filePath.describe('Its private key in PEM, without a passphrase. Read again by a reload.'),
})

const limits = z.strictObject({
  requests_per_minute: count(1).prefault(300).describe('Requests of an account in a window of 60 seconds.'),
  failed_auth_per_minute: count(1).prefault(10).describe('Failed authentications of an address in 60 seconds.'),
  body_bytes_max: count(1024).prefault(5_242_880).describe('The largest request body.'),
  connections_max: count(1).prefault(20_000).describe('Open connections of clients.'),
})

const billing = z.strictObject({
  cut_answers: oneOf(['bill', 'waive'])
    .prefault('bill')
    .describe('An answer that the upstream broke off after output was delivered.'),
  read_on: field
    .duration('0ms', '24h')
    .prefault('10s')
    .describe(
      'How long a stream that its client left is read on where its figures come only at its end: hidden reasoning, a cached share that is cheaper. `0`: never.',
    ),
  hold_output_tokens: z
    .union([z.literal('cap'), count(0)], { error: 'must be a whole number of tokens, or cap' })
    .prefault(1024)
    .describe(
      "Output tokens a hold assumes at most; `cap`: as many as the request's own cap allows, which prepaid credit needs: otherwise an account can end far below zero.",
    ),
})

const timeouts = z.strictObject({
  headers: field.duration('1ms', '24h').prefault('15s').describe("A client's request headers."),
  body: field.duration('1ms', '24h').prefault('60s').describe("A client's whole body."),
  body_gap: field.duration('1ms', '24h').prefault('20s').describe("Silence within a client's body."),
  linger: field
    .duration('1ms', '24h')
    .prefault('5s')
    .describe('Reading on, up to 32 MiB, what a client still sends behind its refusal, so that it gets to see it.'),
  keep_alive: field
    .duration('1ms', '24h')
    .prefault('65s')
    .describe('An idle connection of a client, in whole seconds.'),
  write_stall: field.duration('1ms', '24h').prefault('60s').describe('A client that stops reading.'),
  connect: field.duration('1ms', '24h').prefault('5s').describe('Connecting to an upstream.'),
  first_byte_stream: field.duration('1ms', '7d').prefault('300s').describe("An upstream's first byte of a stream."),
  first_byte_json: field.duration('1ms', '7d').prefault('600s').describe("An upstream's first byte of a JSON answer."),
  idle: field.duration('1ms', '24h').prefault('120s').describe('Silence of an upstream.'),
  progress: field.duration('1ms', '24h').prefault('300s').describe('An upstream that sends only comments and pings.'),
  total: field.duration('1ms', longestTimeout).prefault('60m').describe('A whole answer.'),
  settle_window: field
    .duration('0ms', longestTimeout)
    .prefault('30s')
    .describe('How long usage is awaited after a client left unanswered.'),
  settle_deadline: field
    .duration('1ms', '24h')
    .prefault('5s')
    .describe('How long the store may take a debit before it is spooled.'),
  drain_delay: field.duration('0ms', '24h').prefault('5s').describe('After SIGTERM: not ready, but still accepting.'),
  drain_deadline: field
    .duration('0ms', '7d')
    .prefault('300s')
    .describe('After SIGTERM: how long running answers may take.'),
  ping: field.duration('1ms', '24h').prefault('10s').describe('Silence towards a client before a keep-alive.'),
})

const sealKeyCure = 'must be 32 bytes in base64, 8 of them different; `openssl rand -base64 32` makes one'
const metricsTokenCure =
  'must be at least 16 characters without blanks, 8 of them different; `openssl rand -hex 32` makes some'

const metrics = z.strictObject({
  token: text()
    .regex(/^[!-~]{16,}$/, { error: metricsTokenCure, abort: true })
    .refine((value) => !isGuessable(value), { error: metricsTokenCure })
    .optional()
    .describe('What a scraper has to bring as `authorization: Bearer`. Default: none is asked for on loopback.'),
  accounts: flag
    .prefault(false)
    .describe('Whether there are figures for each account, by its name; for 10,000 at most.'),
  keys: flag
    .prefault(false)
    .describe(
      'Whether there are figures for each key with a budget, by its label and first characters; for 10,000 at most.',
    ),
})

const otlp = z.strictObject({
  endpoint: field.collectorUrl.describe(
    'Where a collector takes OTLP over HTTP, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are added.',
  ),
  headers: field.headersToCollector.prefault({}).describe('Headers sent there, such as `authorization`.'),
  interval: field.duration('10ms', '24h').prefault('5s').describe('How often spans are sent.'),
  metrics_interval: field.duration('10ms', '24h').prefault('60s').describe('How often metrics are sent.'),
})

const telemetry = z.strictObject({
  otlp: otlp
    .optional()
    .describe(
      "Traces and metrics for an OpenTelemetry collector. OpenTelemetry's variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, …) win over it.",
    ),
  genai: oneOf(['standard', 'compat'])
    .prefault('standard')
    .describe('`compat` has the old `gen_ai.client.token.usage` as well.'),
  propagate: flag.prefault(false).describe('Whether requests to upstreams have the trace in `traceparent`.'),
})

const reporting = z.strictObject({
  time_zone: field.timeZone
    .prefault('UTC')
    .describe(
      'Whose days, weeks and months budgets and reports count in: an IANA name such as `Europe/Berlin`. The store records it: `triwire reporting rezone`.',
    ),
  week_starts: oneOf(weekStarts).prefault('monday').describe('The first day of a week.'),
  keep: count(1, 1_200)
    .prefault(13)
    .describe('How many whole months of figures are kept for reports; the ledger itself is kept for ever.'),
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
  symbol: shown(8).prefault('').describe('Stands before amounts on statements and in the console, such as `€`.'),
  name: shown(40)
    .prefault('credits')
    .describe('The name of a credit: the code of a currency, such as `EUR`, if one credit is one of it.'),
  seller: shown(200)
    .prefault('')
    .describe('Who sells the credits, for statements: name and address, in one or more lines.'),
})

const log = z.strictObject({
  level: oneOf(['info', 'error']).prefault('info').describe('`info` has a line for each request.'),
  format: oneOf(['auto', 'json', 'pretty']).prefault('auto').describe('`auto`: pretty in a terminal, else JSON.'),
})

const belowCure = 'must be a decimal of at most 9 places in quotes, such as "5": credits'

const webhook = z
  .strictObject({
    url: field.webhookUrl.describe(
      'Where it is sent, `https://…`; `http://…` gets a warning unless it is in a private network. Redirects are not followed.',
    ),
    secret: field.webhookSecret.describe('What it is signed with: `whsec_` and base64, or at least 16 characters.'),
    events: z
      .array(oneOf(webhookEvents), { error: 'must be a list of events' })
      .min(1, { error: 'must name an event' })
      .optional()
      .describe('Which events. Default: all but `needs_changed`.'),
    below: field
      .decimal(belowCure)
      .refine((nanos) => nanos > 0n, { error: 'must be more than 0' })
      .optional()
      .describe(
        '`credit_low` is sent when the balance of an account falls below so many credits. Without it, and for an account with levels of its own (`account set --warn`), only those count.',
      ),
  })
  .superRefine(({ events, below }, context) => {
    if (events && !events.includes('credit_low') && below !== undefined)
      field.complain(context, 'is for `credit_low`; add it to `events`', ['below'])
  })

export const configSchema = z.strictObject({
  listen: field.address.prefault('127.0.0.1:8080').describe('The public listener. Port 0: any free one.'),
  tls: tls.optional().describe('TLS on the public listener, 1.2 and up. Default: plain HTTP, for a proxy in front.'),
  api_url: field.clientUrl
    .optional()
    .describe(
      'Where clients reach the gateway, `https://host` with or without a path: `setup`, the console and the admin API print it. A final `/v1` is left out. Default: the listening address, which others may not reach.',
    ),
  own_pages: flag
    .prefault(false)
    .describe(
      'Whether `/console/` of this listener shows each person with a key or a session their own use; people reach it at `api_url`.',
    ),
  explain_upstream_text: flag
    .prefault(true)
    .describe(
      'Whether `explain` shows operators what a provider says of an error: after the scrub, at most 400 characters, without what repeats 20 characters of the request; in memory only.',
    ),
  admin_listen: field.address
    .prefault('127.0.0.1:8081')
    .describe(
      'Health, readiness, metrics, the admin API and the console. Off loopback without `admin.tls` only health, readiness and metrics are answered, and all of it on loopback, one port further.',
    ),
  admin: z
    .strictObject({
      public_url: field.publicUrl
        .optional()
        .describe(
          'Where people reach the admin listener, `https://host` with or without a path before its own: it answers under that name too, and its cookies are for TLS alone. Default: under loopback names, and those of its certificate.',
        ),
      tls: tls
        .optional()
        .describe(
          'TLS on the admin listener, 1.2 and up. Default: plain HTTP, which off loopback answers only health, readiness and metrics.',
        ),
      replica_url: field.publicUrl
        .optional()
        .describe(
          'With PostgreSQL: where servers of the same store on other machines reach this admin listener, `https://host:port`; needs `admin.tls`, with a certificate that they trust. Each server has its own. Default: only servers on this machine reach it, through loopback.',
        ),
    })
    .refine(({ replica_url, tls }) => replica_url === undefined || tls !== undefined, {
      path: ['replica_url'],
      error: 'needs admin.tls: what servers tell each other is sent over TLS only',
    })
    .prefault({})
    .describe('The admin listener.'),
  sign_in: signInSchema
    .optional()
    .describe(
      'People sign in at the identity provider of their organisation, agents included, and need no keys. Default: off. A change of the provider takes a restart.',
    ),
  store: field.storePlace
    .prefault('./data/triwire.db')
    .describe(
      'The SQLite file, or `postgres://user@host/database`, which replicas share. The default is relative to the working folder.',
    ),
  state_dir: field.folderPath
    .optional()
    .describe(
      'With PostgreSQL, and needed there: the folder for debits that the database cannot take at the moment; one for each server, on a disk that stays. With SQLite it is the folder of the store.',
    ),
  catalog: catalog.optional().describe('The models. Default: the built-in ones, answered by the built-in simulator.'),
  calendars: calendars.prefault({}).describe('Days by name, such as public holidays, for the bands of prices.'),
  plans: plans
    .prefault({})
    .describe(
      'Plans of accounts (`account create NAME --plan gold`): a factor over all lists, or prices of single models. They are applied after band, tier and step.',
    ),
  ledger: z
    .strictObject({ form: z.literal(3, { error: 'must be 3' }) })
    .optional()
    .describe(
      'With `{ form: 3 }` entries have what answers report of their cost, whatever else is configured. The first one is the point of no return: no older triwire can use the store from then on.',
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
      'What requests may be labelled with, by dimension: `project: [apollo, gemini]`. Keys have labels, and may let clients choose with `x-triwire-labels`.',
    ),
  upstreams: z
    .record(
      z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, { error: 'must be letters, digits, and . _ -' }),
      upstream,
      { error: 'must be a map of upstreams by name' },
    )
    .prefault({})
    .describe('Where models are, by name.'),
  limits: limits.prefault({}).describe('What a client may ask for.'),
  billing: billing.prefault({}).describe('What is billed where it is a choice.'),
  timeouts: timeouts
    .prefault({})
    .describe('Durations such as `500ms`, `30s`, `5m`, `1h`, `1d`; a bare number counts as ms.'),
  trusted_proxies: z
    .array(field.network, { error: 'must be a list of addresses or CIDR ranges' })
    .prefault([])
    .describe('Addresses or CIDR ranges whose `x-forwarded-for` is believed.'),
  seal_key: text()
    .regex(/^[A-Za-z0-9+/]{43}=?$/, { error: sealKeyCure, abort: true })
    .refine((value) => !isGuessable(Buffer.from(value, 'base64')), { error: sealKeyCure })
    .optional()
    .describe(
      'Encrypts signatures that travel through clients. Default: made once beside the store; with PostgreSQL it is needed, the same for all replicas.',
    ),
  headers: z
    .strictObject({
      balance: flag.prefault(true).describe('Answers tell what the account has left, in `x-triwire-balance`.'),
    })
    .prefault({})
    .describe('Headers of answers beyond the specification.'),
  reporting: reporting
    .prefault({})
    .describe('The days of budgets and reports: one zone for all of the store. A change takes a restart.'),
  webhooks: z
    .array(webhook, { error: 'must be a list of webhooks' })
    .max(20, { error: 'must be at most 20' })
    .prefault([])
    .describe(
      'Receivers of messages about low credit, budgets, upstreams and a ledger in trouble. A change takes a restart.',
    ),
  credits: credits.prefault({}).describe('How credits are called on statements.'),
  log: log.prefault({}).describe('The log on stderr.'),
  telemetry: telemetry
    .prefault({})
    .describe('Traces and metrics for OpenTelemetry. Sent only where an address is named; a change takes a restart.'),
  metrics: metrics.prefault({}).describe('`/metrics` on the admin listener, for Prometheus.'),
})

/** The file after checks and with defaults. Its keys are those of the file. */
export type ConfigFile = z.output<typeof configSchema>
/** The settings of a map with the names of the code: camelCase, with the unit at the end. */
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

/** The alternative for values that are not free text: a text with a variable in it. */
const reference = { type: 'string', pattern: '\\$\\{', description: 'Text in which a variable is filled in.' }

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
