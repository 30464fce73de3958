import { X509Certificate } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { zoneOffset } from '../accounts/calendar.ts'
import { mayUse } from '../accounts/key-bounds.ts'
import { asObject } from '../bytes/json.ts'
import type { Model } from '../catalog/model.ts'
import { writeFirst } from '../catalog/near-ids.ts'
import { wiresOfProfileKey } from '../catalog/profile.ts'
import { modelsOf, warnOfChains } from './chains.ts'
import { readClientUrl } from './client-url.ts'
import { camelCase } from './document.ts'
import { endpointsOf, isTakenAsItStands, pathOf } from './endpoints.ts'
import { readModel } from './models.ts'
import { rowsOf } from './price-list.ts'
import { leastNanos, type PriceRowEntry, type PricesEntry, type WrittenRates } from './price-schema.ts'
import type { ConfigProblem } from './problem.ts'
import type { ConfigFile, ModelEntry } from './schema.ts'
import { isDatabaseUrl } from './store-place.ts'
import { formatAddress } from './values.ts'

/** A valid setting that is probably a mistake. The key in `path`, followed by `message`, is one sentence. */
type ConfigWarning = { path: PropertyKey[]; message: string }

/**
 * Finds valid settings that may harm the operator. They are reported by `check`, at the start of a server and at a
 * reload.
 * @param certificates PEM texts, by the key that names the file
 * @returns sentences that name the key and what to change, without values
 */
export function findWarnings(
  file: ConfigFile,
  certificates: Readonly<Record<string, string | undefined>>,
): ConfigWarning[] {
  const ofModels = modelsOf(file.catalog).flatMap(({ entry, index }) => {
    const model = readModel(entry, file)
    const found = [
      ...warnOfWrites(entry, model),
      ...warnOfMedia(entry, model, file.upstreams),
      ...warnOfProfiles(entry),
    ]
    return found.map(({ path, message }) => ({ path: ['catalog', 'models', index, ...path], message }))
  })
  return [
    ...Object.entries(certificates).flatMap(([key, pem]) => warnOfCertificate(key, pem)),
    ...listsOf(file).flatMap(warnOfRates),
    ...ofModels,
    ...warnOfChains(file),
    ...warnOfApiUrl(file),
    ...warnOfBases(file),
    ...warnOfPlainBases(file),
    ...warnOfCalls(file),
    ...warnOfPlans(file),
    ...warnOfCalendars(file),
    ...warnOfUnused(file),
    ...warnOfStateDir(file),
    ...warnOfDay(file),
    ...warnOfReceivers(file),
    ...warnOfRules(file),
  ]
}

/** Warns of an unsuitable `api_url`, because clients are set up with this address and send their keys to it (CON-3). */
function warnOfApiUrl({ api_url: apiUrl, tls, admin, admin_listen: adminListen }: ConfigFile): ConfigWarning[] {
  if (apiUrl === undefined) return []
  const { protocol, hostname, host } = new URL(apiUrl)
  const isPlain = protocol === 'http:'
  const isAdmin =
    (admin.public_url !== undefined && readClientUrl(admin.public_url) === readClientUrl(apiUrl)) ||
    host === formatAddress(adminListen)
  const message = isAdmin
    ? 'is the address of the admin listener, which answers no request to a model: name that of `listen`, or of the proxy before it'
    : isPlain && tls
      ? 'begins with http://, and the listener speaks TLS: write https://'
      : isPlain && !isPrivate(hostname)
        ? 'lets clients send their keys in plain text over the internet: use https://'
        : hostname === 'localhost' || /^(?:127\.|\[::1\])/.test(hostname)
          ? 'is of use on this machine alone: name a host that other machines reach'
          : undefined
  return message === undefined ? [] : [{ path: ['api_url'], message }]
}

function warnOfStateDir({ store, state_dir: stateDir }: ConfigFile): ConfigWarning[] {
  if (stateDir === undefined || isDatabaseUrl(store)) return []
  return [{ path: ['state_dir'], message: 'counts with PostgreSQL only: with SQLite it is the folder of the store' }]
}

function warnOfUnused({ catalog, upstreams }: ConfigFile): ConfigWarning[] {
  if (catalog || Object.keys(upstreams).length === 0) return []
  const message = 'is not used: without a `catalog` the built-in simulator answers; list the models under `catalog`'
  return [{ path: ['upstreams'], message }]
}

/** Warns of profile keys for another wire, which have no effect. */
function warnOfProfiles({ wire, profile, upstream }: ModelEntry): ConfigWarning[] {
  const routes = Array.isArray(upstream) ? upstream : []
  const own = routes.map((route, at) => [['upstream', at, 'profile'], asObject(asObject(route)?.['profile'])] as const)
  return [[['profile'], asObject(profile)] as const, ...own].flatMap(([path, said]) =>
    Object.keys(said ?? {}).flatMap((key) => {
      const wires = wiresOfProfileKey(camelCase(key))
      if (wires.includes(wire)) return []
      const message = `is for models of the wire ${wires.join(' or ')} and says nothing of this one, which is ${wire}; take it out`
      return [{ path: [...path, key], message }]
    }),
  )
}

function warnOfCertificate(key: string, pem: string | undefined): ConfigWarning[] {
  if (!pem) return []
  const end = new X509Certificate(pem).validToDate
  if (end.getTime() > Date.now()) return []
  const message = `has expired on ${end.toISOString().slice(0, 10)}: clients refuse it; renew it, and reload`
  return [{ path: [...key.split('.'), 'cert'], message }]
}

/** Addresses of providers whose paths have no version (docs/providers.md). */
const versionless = ['models.github.ai/inference', '.cloud.databricks.com/serving-endpoints']

/** Warns of a base URL that probably lacks `/v1`. The gateway adds no version to a path (ruling P8). */
function warnOfBases({ catalog, upstreams }: ConfigFile): ConfigWarning[] {
  return Object.entries(upstreams).flatMap(([name, { base_url: baseUrl, paths }]) => {
    const isServing = ({ upstream }: ModelEntry) =>
      [upstream].flat().some((route) => (typeof route === 'string' ? route : route.name) === name)
    const served = new Set(modelsOf(catalog).flatMap(({ entry }) => (isServing(entry) ? entry.wire : [])))
    const affected = [...served].filter((wire) => isTakenAsItStands(wire, pathOf(baseUrl)) && paths[wire] === undefined)
    const address = new URL(baseUrl).host + pathOf(baseUrl)
    if (affected.length === 0 || versionless.some((known) => address.endsWith(known))) return []
    const endpoints = endpointsOf({ baseUrl })
    const told = affected.map((wire) => `\`${endpoints[wire][0]}\``).join(' and ')
    const message = `has a path without a version, and is taken as it stands: requests go to ${told}. End it in \`/v1\` if the provider's address does, or say so with \`paths\``
    return [{ path: ['upstreams', name, 'base_url'], message }]
  })
}

/** Warns of upstreams whose keys travel in plain text over the internet. */
function warnOfPlainBases({ upstreams }: ConfigFile): ConfigWarning[] {
  return Object.entries(upstreams).flatMap(([name, { base_url: baseUrl }]) => {
    const { protocol, hostname } = new URL(baseUrl)
    if (protocol === 'https:' || isPrivate(hostname)) return []
    const message = 'lets its keys be read by everybody on their way over the internet: use https://'
    return [{ path: ['upstreams', name, 'base_url'], message }]
  })
}

/** Formats a warning for people, with its line if there is a file. */
export function formatWarning({ line, message }: ConfigProblem): string {
  return line === undefined ? message : `line ${line}: ${message}`
}

/** Warns of upstreams in a private network that would fetch internal addresses on behalf of a client (ruling U12). */
function warnOfMedia(entry: ModelEntry, { routes }: Model, upstreams: ConfigFile['upstreams']): ConfigWarning[] {
  const isReached = routes.some(({ upstream, serving }) => {
    const baseUrl = upstreams[upstream]?.base_url
    return baseUrl !== undefined && serving.profile.remoteMedia !== 'refuse' && isPrivate(new URL(baseUrl).hostname)
  })
  if (entry.remote_media !== undefined || !isReached) return []
  const message =
    'has an upstream in a private network and lets addresses of media pass, which that server would fetch from inside; set `remote_media: refuse`, or `pass` if that is meant'
  return [{ path: [], message }]
}

/** Whether a host is a loopback, private or link-local address, or a name without a dot or in a local zone. */
function isPrivate(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (isIPv4(host)) return /^(?:127|10|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))\./.test(host)
  if (isIPv6(host)) return host === '::1' || /^(?:f[cd]|fe[89ab])/.test(host)
  return !host.includes('.') || /\.(?:local|internal|lan|home\.arpa)$/.test(host)
}

/** Returns all price lists of a file: prices and costs of models, costs of routes, and the lists of plans. */
function listsOf({ catalog, plans }: ConfigFile): { at: PropertyKey[]; prices: PricesEntry }[] {
  const ofModels = modelsOf(catalog).flatMap(({ entry: { prices, cost, upstream }, index }) =>
    [
      { at: ['prices'], prices },
      { at: ['cost'], prices: cost },
      ...[upstream].flat().map((route, number) => ({
        at: ['upstream', number, 'cost'],
        prices: typeof route === 'string' ? undefined : route.cost,
      })),
    ].map(({ at, prices }) => ({ at: ['catalog', 'models', index, ...at], prices })),
  )
  const ofPlans = Object.entries(plans).flatMap(([name, { models = {} }]) =>
    Object.entries(models).map(([id, prices]) => ({ at: ['plans', name, 'models', id], prices })),
  )
  return [...ofModels, ...ofPlans].flatMap(({ at, prices }) =>
    prices === undefined || typeof prices === 'bigint' ? [] : { at, prices },
  )
}

/**
 * Warns of prices that are probably per token, as in LiteLLM. Also warns if reading from a cache costs more than input
 * (NEW-8).
 */
function warnOfRates({ at, prices }: { at: PropertyKey[]; prices: PricesEntry }): ConfigWarning[] {
  const all = rowsOf<PriceRowEntry>(prices).flatMap(({ row, path }) => ratesOf(row, [...at, ...path.slice(1)]))
  return all.flatMap(({ rates: { input, cache_read: cached = 0n, ...rest }, path }): ConfigWarning[] => {
    const small = Object.entries({ input, cache_read: cached, ...rest }).find(
      ([, nanos]) => typeof nanos === 'bigint' && nanos > 0n && nanos < leastNanos,
    )
    if (small)
      return [
        {
          path: [...path, small[0]],
          message: 'is less than 0.001 for a million tokens: is it the price of one token? Multiply it by 1,000,000',
        },
      ]
    const message =
      'is dearer than `input`, though providers sell what they read from a cache for less: are they exchanged?'
    return cached > input ? [{ path: [...path, 'cache_read'], message }] : []
  })
}

/**
 * Returns all explicit prices of a row: those of the row itself, and of its bands, tiers and geographies. If any of
 * these has steps, the prices of its steps are included.
 */
function ratesOf(
  row: PriceRowEntry,
  path: PropertyKey[],
): { rates: Omit<WrittenRates, 'steps'>; path: PropertyKey[] }[] {
  const { bands = [], tiers = {}, geos = {} } = row
  const others = Object.entries({ bands, tiers, geos }).flatMap(([key, map]) =>
    Object.entries(map).map(([name, one]) => ({ one, path: [...path, key, key === 'bands' ? Number(name) : name] })),
  )
  return [{ one: row, path }, ...others].flatMap(({ one, path }) => {
    if (typeof one === 'bigint' || one.input === undefined) return []
    const rates = one as WrittenRates
    return [{ rates, path }, ...(rates.steps ?? []).map((rates, step) => ({ rates, path: [...path, 'steps', step] }))]
  })
}

/** Warns of sign-in rules that name models which the catalog lacks (NEW-8). */
function warnOfRules({ sign_in: signIn, catalog }: ConfigFile): ConfigWarning[] {
  if (!signIn || !catalog) return []
  const ids = catalog.models.flatMap((entry) => [entry.id, ...('also' in entry ? (entry.also ?? []) : [])])
  return signIn.rules.flatMap(({ models = [] }, index) => {
    if (models.every((model) => ids.some((id) => mayUse([model], id)))) return []
    const message =
      'has a name that fits no model of the catalog, so that nobody can ask for it: write ids of `catalog.models`'
    return [{ path: ['sign_in', 'rules', index, 'models'], message }]
  })
}

const dayMs = 86_400_000

/** How long before the end of a calendar the warning begins, in ms. Lists of holidays are published months ahead. */
const noticeMs = 45 * dayMs

/** Warns of calendars (lists of holidays) that end soon. Afterwards, holidays get the prices of working days. */
function warnOfCalendars(file: ConfigFile): ConfigWarning[] {
  const { calendars } = file
  const rows = listsOf(file).flatMap(({ prices }) => [prices].flat())
  const used = new Set(rows.flatMap(({ bands = [] }) => bands.map(({ not_on: name }) => name)))
  return Object.entries(calendars).flatMap(([name, { through, zone }]): ConfigWarning[] => {
    const midnight = Date.parse(through) + dayMs
    const leftMs = midnight - zoneOffset(zone)(midnight) - Date.now()
    if (!used.has(name) || leftMs > noticeMs) return []
    const message =
      leftMs > 0
        ? `is the last day of the calendar, in ${Math.ceil(leftMs / dayMs)} days: then every day counts as a working day; add the days that follow, and move \`through\``
        : 'is over: every day since then counts as a working day, and bands sell at their prices on holidays too; add the days that follow, and move `through`'
    return [{ path: ['calendars', name, 'through'], message }]
  })
}

/** Warns if `pinned`, by which clients sort models, is after tomorrow. In other time zones tomorrow has begun. */
function warnOfDay({ catalog }: ConfigFile): ConfigWarning[] {
  if (!catalog || Date.parse(catalog.pinned) <= Date.now() + dayMs) return []
  return [{ path: ['catalog', 'pinned'], message: 'is a day to come: write the day on which the list was made' }]
}

/**
 * Warns of an endpoint for telemetry that has a collector's gRPC port. Also warns of webhooks that are sent in plain
 * text over the internet.
 */
function warnOfReceivers({ telemetry, webhooks }: ConfigFile): ConfigWarning[] {
  const { otlp } = telemetry
  const isGrpc = otlp !== undefined && new URL(otlp.endpoint).port === '4317'
  const message = 'has the port of OTLP over gRPC, which is not spoken here: collectors take OTLP over HTTP at 4318'
  const plain = webhooks.flatMap(({ url }, index): ConfigWarning[] => {
    const { protocol, hostname } = new URL(url)
    if (protocol === 'https:' || isPrivate(hostname)) return []
    return [{ path: ['webhooks', index, 'url'], message: 'is sent in plain text over the internet: use https://' }]
  })
  return [...(isGrpc ? [{ path: ['telemetry', 'otlp', 'endpoint'], message }] : []), ...plain]
}

/** Warns if cache writes have no price. They are then billed as plain input, although the provider charges more. */
function warnOfWrites({ prices: list, wire }: ModelEntry, { routes }: Model): ConfigWarning[] {
  return rowsOf<PriceRowEntry>(list).flatMap(({ row, path }) => warnOfRowWrites(row, path, wire, routes))
}

function warnOfRowWrites(
  prices: PriceRowEntry,
  path: PropertyKey[],
  wire: Model['wire'],
  routes: Model['routes'],
): ConfigWarning[] {
  const hasMarks = wiresOfProfileKey('autoCache').includes(wire)
  const isMarked = hasMarks && routes.some(({ serving }) => serving.profile.messages.autoCache !== 'off')
  const charges = new Set(routes.flatMap(({ serving }) => serving.profile.charges))
  if (prices.cache_write === undefined && (isMarked || charges.has('cache_write'))) {
    const message = isMarked
      ? 'has no `cache_write`: requests to this model get cache marks, and what a provider charges for writing its cache (often 1.25 times the input) is sold as plain input; set it, or `profile.auto_cache: off`'
      : 'has no `cache_write`: clients may set cache marks themselves, and what the provider charges for writing its cache is sold as plain input; set it'
    return [{ path, message }]
  }
  return longWrites.flatMap(({ kind, beside, time, costs }): ConfigWarning[] => {
    if (prices[kind] !== undefined || prices[beside] === undefined || !charges.has(kind)) return []
    const message = `has no \`${kind}\`: clients may ask for a cache of ${time}, for which the provider charges more (often ${costs}); set it`
    return [{ path, message }]
  })
}

/**
 * Prices of writes to a long-lived cache. If a model has the price that `beside` names, it should also have the price
 * that `kind` names.
 */
const longWrites = [
  { kind: 'cache_write_1h', beside: 'input', time: 'an hour', costs: 'twice the input' },
  { kind: 'cache_write_12h', beside: 'cache_write', time: 'twelve hours', costs: '2.5 times the input' },
] as const

/** Gives one warning for all models that allow calls of the provider's tools but have no price for such calls (C11). */
function warnOfCalls({ catalog, calendars }: ConfigFile): ConfigWarning[] {
  const silent = modelsOf(catalog).flatMap(({ entry, index }) =>
    isSilentOfCalls(readModel(entry, { calendars })) ? [{ id: entry.id, index }] : [],
  )
  if (silent.length === 0) return []
  const ids = writeFirst(silent.map(({ id }) => id))
  const message = `lets calls of the provider's own tools (web search and others) pass without a price for ${ids}: give them one by \`prices.calls\`, or set \`hosted_tools: refuse\``
  return [{ path: ['catalog', 'models', silent[0]!.index], message }]
}

/** Warns of prices in plans that lack a price for what the provider charges: cache writes, and calls of its tools. */
function warnOfPlans(file: ConfigFile): ConfigWarning[] {
  const { catalog, plans } = file
  return modelsOf(catalog).flatMap(({ entry }) => {
    const model = readModel(entry, file)
    return Object.entries(plans).flatMap(([name, { models = {} }]): ConfigWarning[] => {
      const own = Object.hasOwn(models, entry.id) ? models[entry.id] : undefined
      if (own === undefined || typeof own === 'bigint') return []
      const at = ['plans', name, 'models', entry.id]
      const isSilent = isSilentOfCalls({ ...model, prices: model.plans!.get(name)! })
      const message =
        "has no `calls`, which the model has: calls of the provider's own tools cost nothing under this plan; add it"
      return [
        ...rowsOf<PriceRowEntry>(own).flatMap(({ row, path }) =>
          warnOfRowWrites(row, [...at, ...path.slice(1)], entry.wire, model.routes),
        ),
        ...(isSilent && !isSilentOfCalls(model) ? [{ path: at, message }] : []),
      ]
    })
  })
}

function isSilentOfCalls({ routes, hostedTools, prices }: Model): boolean {
  return (
    hostedTools === 'pass' &&
    !prices.hasCalls &&
    routes.some(({ serving }) => serving.profile.charges.includes('calls'))
  )
}
