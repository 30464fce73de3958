import { isUtf8 } from 'node:buffer'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { spellZone } from '../accounts/calendar.ts'
import { usualEvents } from '../accounts/warnings.ts'
import { asObject } from '../bytes/json.ts'
import { createCatalog } from '../catalog/model.ts'
import { isChain, modelsOf, readChain } from './chains.ts'
import { readClientUrl } from './client-url.ts'
import { type CloudEntries, placeFor, placeMistakes } from './clouds.ts'
import {
  type CloudAccount,
  type Config,
  type ConfigSource,
  Secret,
  type StorePlace,
  type TlsPair,
  type Upstream,
  type UpstreamAccount,
  type Webhook,
} from './config.ts'
import { digestConfig } from './differences.ts'
import { camelCase, type Document, formatPath, readDocument } from './document.ts'
import { type EgressProxy, type EgressRoute, environmentProxy, noProxy, parseProxy, proxyMistake } from './egress.ts'
import { type EndpointSettings, endpointsOf } from './endpoints.ts'
import { explain } from './explain.ts'
import { litellmReferences } from './litellm-words.ts'
import { modelMistakes } from './model-mistakes.ts'
import { builtInCatalog, builtInModels, readHeaders, readModel, spellProfiles } from './models.ts'
import { type NamedFiles, readNamedFiles } from './named-files.ts'
import { planMistakes, priceMistakes } from './price-list.ts'
import { ConfigError, type ConfigProblem } from './problem.ts'
import { type ConfigFile, configSchema, type SettingsInCode } from './schema.ts'
import { readSignIn, signInAddressMistake } from './sign-in.ts'
import { hasScheme, isDatabaseUrl, readStorePlace } from './store-place.ts'
import { readTelemetry } from './telemetry.ts'
import { type Address, addressBeside, isLoopback, parseBaseUrl, portMax } from './values.ts'
import { findWarnings } from './warnings.ts'

/** Flags of the command line. A flag overrides its environment variable, which overrides the file (ruling X4). */
export type ConfigOptions = {
  config?: string
  listen?: string
  adminListen?: string
  store?: string
  /** If set, the files that the configuration names are not read, because the user may have no access to them. */
  isWithoutFiles?: boolean
  /** If set, secrets may refer to unset variables, because neither an upstream nor a receiver is contacted. */
  isWithoutKeys?: boolean
  /** If set, the store is not opened, so its URL may refer to unset variables, for example for its password. */
  isWithoutStore?: boolean
}

/** The variable that contains the text of a configuration, for systems without files (ruling X13). */
const textVariable = 'TRIWIRE_CONFIG_YAML'

/** The settings that a flag or an environment variable can override. `key` is the name of the setting in the file. */
const overrides: readonly Override[] = [
  { key: 'listen', flag: 'listen', flagName: '--listen', variable: 'TRIWIRE_LISTEN' },
  { key: 'admin_listen', flag: 'adminListen', flagName: '--admin-listen', variable: 'TRIWIRE_ADMIN_LISTEN' },
  { key: 'store', flag: 'store', flagName: '--store', variable: 'TRIWIRE_STORE' },
  { key: 'state_dir', variable: 'TRIWIRE_STATE_DIR' },
  { key: 'seal_key', variable: 'TRIWIRE_SEAL_KEY' },
]

type Override = { key: string; flag?: 'listen' | 'adminListen' | 'store'; flagName?: string; variable: string }

/**
 * Loads the configuration. Flags override the environment, which overrides the file and its defaults (ruling X4). The
 * file is `--config`, or else `TRIWIRE_CONFIG`, or else the text in `TRIWIRE_CONFIG_YAML`, or else `./triwire.yaml`.
 * Paths in the file are relative to it. Other paths, and the store's default, are relative to the working folder (X8).
 * @throws ConfigError with all mistakes
 */
export function loadConfig(options: ConfigOptions, env: NodeJS.ProcessEnv = process.env, cwd = process.cwd()): Config {
  return load(findSource(options, env, cwd), options, env, cwd)
}

/** Loads the configuration for a command without secrets. The variables of secrets may be unset. @throws ConfigError */
export function glanceAtConfig(options: ConfigOptions): Config {
  return loadConfig({ ...options, isWithoutFiles: true, isWithoutKeys: true, isWithoutStore: true })
}

/** Loads a configuration from a text, as if the text were a file in the working folder. @throws ConfigError */
export function loadText(text: string, name: string, options: ConfigOptions, env = process.env): Config {
  return load({ text: new Secret(text), name }, options, env, process.cwd())
}

/**
 * Loads the configuration again. It reads the same file as at the start, or no file if there was none (ruling X10).
 * @throws ConfigError with all mistakes. It is a mistake if a file exists now and none existed at the start. A file
 * without a catalog, such as a truncated one, is a mistake too, because it would bring in the built-in catalog.
 */
export function reloadConfig(
  { file, isBuiltIn }: Config,
  options: ConfigOptions,
  env: NodeJS.ProcessEnv = process.env,
  cwd = process.cwd(),
): Config {
  const source = file === undefined ? findSource(options, env, cwd) : readFile(file, true)
  if (file === undefined && source?.file !== undefined) {
    const message = `${source.file} was not there when the server started: restart it, and that file is read`
    throw new ConfigError([{ path: '', message }])
  }
  const next = load(source, options, env, cwd)
  if (next.isBuiltIn && !isBuiltIn) {
    const message = `${source?.name ?? 'the configuration'} has no catalog any more: put it back; only a restart serves the built-in one`
    throw new ConfigError([{ path: 'catalog', message }])
  }
  return next
}

/** Returns the mistakes that this file would have with this text. Unset variables are no mistakes here. */
export function findProblems(
  file: string,
  text: string,
  env: NodeJS.ProcessEnv = process.env,
): readonly ConfigProblem[] {
  const named = [...text.matchAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)/g)].map(([, name]) => [name!, env[name!] ?? 'unset'])
  try {
    load(
      { text: new Secret(text), name: file, file },
      { isWithoutFiles: true },
      Object.fromEntries(named),
      dirname(file),
    )
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

/**
 * Returns the path that `loadConfig` reads, so that a command can write the file. The file may not exist yet.
 * @throws ConfigError if the configuration is in a variable
 */
export function configFile(options: ConfigOptions, env: NodeJS.ProcessEnv = process.env, cwd = process.cwd()): string {
  if (env[textVariable] && options.config === undefined) {
    const message = `${textVariable} holds the configuration: change it there, or name a file with --config`
    throw new ConfigError([{ path: '', message }])
  }
  return resolve(cwd, options.config ?? (env['TRIWIRE_CONFIG'] || 'triwire.yaml'))
}

/** Returns the text of the configuration, which is empty if there is no configuration. @throws ConfigError */
export function configText(options: ConfigOptions, env: NodeJS.ProcessEnv = process.env, cwd = process.cwd()): string {
  return findSource(options, env, cwd)?.text.reveal() ?? ''
}

function load(source: ConfigSource | undefined, options: ConfigOptions, env: NodeJS.ProcessEnv, cwd: string): Config {
  const { file, name } = source ?? {}
  const document = source ? readDocument(source.text.reveal(), env, (path) => standInFor(options, path)) : emptyDocument
  // A file that is not YAML or not a map cannot be checked further.
  const written = asObject(document.value)
  if (!written) {
    const message = 'the file must be a map of keys, such as `listen: 127.0.0.1:8080`'
    throw new ConfigError(document.problems.length > 0 ? document.problems : [{ path: '', line: 1, message }], name)
  }
  const raw: Record<string, unknown> = { ...written }
  const sources = new Map<string, string>()
  for (const { key, flag, flagName, variable } of overrides) {
    const said = flag && options[flag]
    const value = said ?? (env[variable] || undefined)
    if (value === undefined) continue
    const isPath = key === 'state_dir' || (key === 'store' && !hasScheme(value))
    raw[key] = isPath && value ? resolve(cwd, value) : value
    sources.set(key, said === undefined ? variable : (flagName ?? ''))
  }

  const spelled = spellProfiles(raw)
  const parsed = configSchema.safeParse(spelled)
  const problems = [...document.problems]
  const reported = new Set(problems.map(({ path }) => path))
  const report = (path: readonly PropertyKey[], message: string) => {
    const key = formatPath(path)
    // Each value gets only one message. References to unset variables were reported before.
    if (reported.has(key)) return
    reported.add(key)
    const source = path.length === 1 ? sources.get(key) : undefined
    if (source) problems.push({ path: source, message: `${source} ${message}` })
    else problems.push({ path: key, line: document.lineOf(path), message: `${key || 'the file'} ${message}` })
  }
  for (const { path, message } of litellmReferences(written)) report(path, message)
  for (const issue of parsed.error?.issues ?? []) explain(issue, spelled, report)
  for (const { path, message } of [...modelMistakes(spelled), ...priceMistakes(spelled)]) report(path, message)
  if (parsed.data && problems.length === 0)
    for (const { path, message } of planMistakes({ ...parsed.data, models: entriesOf(parsed.data) }))
      report(path, message)
  // Variables that say how upstreams are reached do not matter if none is contacted. Perhaps only the server has them.
  const reach = options.isWithoutKeys ? { AWS_REGION: 'unset' } : env
  if (parsed.data) for (const { path, message } of placeMistakes(parsed.data.upstreams, reach)) report(path, message)
  const adminMistake = parsed.data && adminListenMistake(parsed.data)
  if (adminMistake) report(['admin_listen'], adminMistake)
  if (parsed.data && (parsed.data.sign_in || parsed.data.own_pages)) {
    const mistake = signInAddressMistake(parsed.data.api_url, parsed.data.listen.host)
    if (mistake) report(['api_url'], mistake)
  }
  if (parsed.data && !options.isWithoutFiles) reportMissing(parsed.data, report)
  const folder = file === undefined ? cwd : dirname(file)
  const files = parsed.data && !options.isWithoutFiles ? readNamedFiles(parsed.data, folder, report) : new Map()
  const proxies = parsed.data ? readProxies(parsed.data, reach, problems) : new Map()
  if (!parsed.data || problems.length > 0) {
    throw new ConfigError(
      problems.sort((a, b) => (a.line ?? 0) - (b.line ?? 0)),
      name,
    )
  }
  const certificateOf = (named: { cert: string } | undefined) => named && files.get(resolve(folder, named.cert))
  const certificates = {
    tls: certificateOf(parsed.data.tls),
    'admin.tls': certificateOf(parsed.data.admin.tls),
  }
  const warnings = findWarnings(parsed.data, certificates).map(({ path, message }) => {
    const key = formatPath(path)
    return { path: key, line: document.lineOf(path), message: `${key} ${message}` }
  })
  const ofVariables: ConfigProblem[] = []
  const telemetry = readTelemetry(parsed.data.telemetry, env, ofVariables)
  const isStoreNamed = raw['store'] !== undefined
  return build(parsed.data, {
    ...{ source, env, folder, files, proxies, telemetry },
    warnings: [...(source === undefined ? warnOfNames(cwd) : []), ...warnings, ...ofVariables],
    store: readStorePlace(parsed.data.store, isStoreNamed ? folder : cwd),
    earlierStore: isStoreNamed || folder === cwd ? undefined : resolve(folder, parsed.data.store),
    digest: digestConfig(raw),
  })
}

/** A pattern for the paths of values that some commands do not need, and the text that replaces such a value. */
type StandInPlace = readonly [place: RegExp, standIn: string]

const keyPlaces: readonly StandInPlace[] = [
  [/^upstreams\..+\.accounts\[\d+\]\.(?:key(?:_command\[\d+\])?|azure\.secret)$/, 'unset'],
  [/\.(?:headers|query)\..+$/, 'unset'],
  // Files and a folder that only a server opens. Commands also read `admin.tls.cert`, to recognise the server.
  [/_file$|^tls\.|^admin\.tls\.key$|^state_dir$/, 'unset'],
  [/^(?:upstreams\..+|webhooks\[\d+\]|sign_in)\.proxy$/, 'http://unset.invalid'],
  [/^sign_in\.client_secret$/, 'unset'],
  [/^seal_key$/, Buffer.from('a stand-in for an unset seal_key').toString('base64')],
  [/^webhooks\[\d+\]\.url$/, 'https://unset.invalid'],
  [/^webhooks\[\d+\]\.secret$|^metrics\.token$/, 'a-stand-in-for-an-unset-secret'],
]

const storePlaces: readonly StandInPlace[] = [[/^store$/, 'unset']]

/** Returns a stand-in for a value that is not needed. It replaces the whole value if one of its variables is not set. */
function standInFor({ isWithoutKeys, isWithoutStore }: ConfigOptions, path: string): string | undefined {
  const places = [...(isWithoutKeys ? keyPlaces : []), ...(isWithoutStore ? storePlaces : [])]
  return places.find(([place]) => place.test(path))?.[1]
}

/**
 * Reports missing settings that only a shared database requires. For a store in a file, they follow from its folder
 * (rulings T7, X13).
 */
function reportMissing(file: ConfigFile, report: (path: readonly PropertyKey[], message: string) => void): void {
  if (!isDatabaseUrl(file.store)) return
  if (file.state_dir === undefined)
    report(
      ['state_dir'],
      'is needed with a store in PostgreSQL: a folder of its own for each server, on a disk that stays (or TRIWIRE_STATE_DIR)',
    )
  if (file.seal_key === undefined)
    report(
      ['seal_key'],
      'is needed with a store in PostgreSQL, the same for all its servers: 32 bytes in base64, `openssl rand -base64 32` makes one (or TRIWIRE_SEAL_KEY)',
    )
}

/** File names that people use by mistake. */
const nearNames = ['triwire.yml', 'triwire.json']

/** Warns if no configuration was found but the folder has a file with a similar name. */
function warnOfNames(cwd: string): ConfigProblem[] {
  const found = nearNames.filter((name) => existsSync(resolve(cwd, name)))
  const message = 'lies in the working folder and is not read: call it triwire.yaml, or name it with --config'
  return found.map((name) => ({ path: name, message: `${name} ${message}` }))
}

/**
 * Returns the proxies of upstreams, webhooks and the identity provider by their path, from the file or the environment.
 * Mistakes in unused proxies are ignored.
 */
function readProxies(
  file: ConfigFile,
  env: NodeJS.ProcessEnv,
  problems: ConfigProblem[],
): ReadonlyMap<string, EgressProxy> {
  const proxies = new Map<string, EgressProxy>()
  const servers = [
    ...Object.entries(file.upstreams).map(([name, { base_url: url, proxy }]) => ({
      path: `upstreams.${name}`,
      url,
      proxy,
    })),
    ...file.webhooks.map(({ url, proxy }, index) => ({ path: `webhooks[${index}]`, url, proxy })),
    ...(file.sign_in ? [{ path: 'sign_in', url: file.sign_in.issuer, proxy: file.sign_in.proxy }] : []),
  ]
  for (const { path, url, proxy } of servers) {
    const said = proxy === undefined ? environmentProxy(url, env) : { value: proxy, source: `${path}.proxy` }
    if (!said || said.value === noProxy) continue
    const mistake = proxyMistake(said.value)
    if (!mistake) proxies.set(path, { url: new Secret(parseProxy(said.value)), source: said.source })
    else if (!problems.some(({ path }) => path === said.source))
      problems.push({ path: said.source, message: `${said.source} ${mistake}; NO_PROXY spares hosts of it` })
  }
  return proxies
}

/** Returns the configuration with the built-in simulator as the upstream of the built-in models. */
export function withSimulator(config: Config, url: string): Config {
  const simulator: Upstream = {
    name: 'simulator',
    ...locationOf({ baseUrl: parseBaseUrl(url) }),
    keyHeader: undefined,
    proxy: undefined,
    ca: undefined,
    accounts: [{ name: 'simulator', key: new Secret('simulator'), isEnabled: true }],
    messagesHeaders: 'anthropic',
    headers: new Map(),
    reuses: true,
  }
  return Object.freeze({ ...config, upstreams: new Map([...config.upstreams, [simulator.name, simulator]]) })
}

const emptyDocument: Document = { value: {}, problems: [], lineOf: () => 1 }

function findSource(options: ConfigOptions, env: NodeJS.ProcessEnv, cwd: string): ConfigSource | undefined {
  const named = options.config ?? (env['TRIWIRE_CONFIG'] || undefined)
  const text = env[textVariable]
  if (text && options.config === undefined) {
    if (named === undefined) return { text: new Secret(text), name: textVariable }
    throw new ConfigError([{ path: '', message: `TRIWIRE_CONFIG and ${textVariable} are both set: set one of them` }])
  }
  if (named !== undefined) return readFile(resolve(cwd, named))
  const usual = resolve(cwd, 'triwire.yaml')
  return existsSync(usual) ? readFile(usual) : undefined
}

/** @param isAgain whether a server reads it again. Reading a pipe would stop the server until somebody writes into it. */
function readFile(file: string, isAgain = false): ConfigSource {
  try {
    if (isAgain && statSync(file).isFIFO())
      throw new ConfigError([
        { path: '', message: `${file} is a pipe, which only the start reads: restart the server, or name a file` },
      ])
    const bytes = readFileSync(file)
    // A file with zero bytes may be UTF-16, which `readDocument` reports.
    if (!isUtf8(bytes) && !bytes.includes(0))
      throw new ConfigError([{ path: '', line: 1, message: 'the file is not UTF-8: save it as UTF-8' }], file)
    return { text: new Secret(bytes.toString('utf8')), name: file, file }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const { code } = error as NodeJS.ErrnoException
    throw new ConfigError([
      { path: '', message: `cannot read the configuration file ${file} (${code}); check --config and TRIWIRE_CONFIG` },
    ])
  }
}

/** Finds an address or a port of the admin listener that cannot be used, because `listen` uses it, for example. */
function adminListenMistake({ listen, admin_listen: admin, admin: { tls } }: ConfigFile): string | undefined {
  if (isSameAddress(listen, admin)) return 'must not be the address of `listen`'
  if (tls || isLoopback(admin) || admin.port === 0) return undefined
  const beside = addressBeside(admin)
  if (beside.port <= portMax && !isSameAddress(listen, beside)) return undefined
  return 'must have another port: without `admin.tls`, the admin API and commands use the next port on loopback, which must be free'
}

/** Whether two listeners would use the same address. `0.0.0.0` includes all IPv4 addresses, and `::` all addresses. */
function isSameAddress(one: Address, other: Address): boolean {
  if (one.port === 0 || one.port !== other.port) return false
  const has = (all: string, host: string) => all === '::' || (all === '0.0.0.0' && !host.includes(':'))
  return one.host === other.host || has(one.host, other.host) || has(other.host, one.host)
}

type LoadOrigin = {
  source: ConfigSource | undefined
  env: NodeJS.ProcessEnv
  folder: string
  files: NamedFiles
  proxies: ReadonlyMap<string, EgressProxy>
  telemetry: Config['telemetry']
  warnings: Config['warnings']
  store: StorePlace
  earlierStore: string | undefined
  digest: string
}

function build(file: ConfigFile, origin: LoadOrigin): Config {
  const { source, folder, warnings } = origin
  return Object.freeze({
    file: source?.file,
    source: source?.name,
    listen: file.listen,
    tls: file.tls && readTls(file.tls, origin),
    ledgerForm: file.ledger?.form,
    labels: new Map(Object.entries(file.labels).map(([dimension, values]) => [dimension, new Set(values)])),
    plans: Object.keys(file.plans),
    apiUrl: file.api_url && readClientUrl(file.api_url),
    ownPages: file.own_pages,
    ownPage:
      file.api_url !== undefined && (file.own_pages || file.sign_in)
        ? `${readClientUrl(file.api_url)}/console/`
        : undefined,
    explainUpstreamText: file.explain_upstream_text,
    adminListen: file.admin_listen,
    adminUrl: file.admin.public_url && readPublicUrl(file.admin.public_url),
    adminReplicaUrl: file.admin.replica_url && readPublicUrl(file.admin.replica_url),
    adminTls: file.admin.tls && {
      ...readTls(file.admin.tls, origin),
      certFile: resolve(folder, file.admin.tls.cert),
    },
    signIn:
      file.sign_in &&
      readSignIn(file.sign_in, {
        secret: fileText(file.sign_in.client_secret_file, origin),
        ca: fileText(file.sign_in.ca_file, origin),
      }),
    store: origin.store,
    earlierStore: origin.earlierStore,
    stateDir: origin.store.engine === 'sqlite' ? dirname(origin.store.path) : resolve(folder, file.state_dir ?? ''),
    digest: origin.digest,
    catalog: file.catalog ? readCatalog(file.catalog, file) : builtInCatalog(file),
    upstreams: new Map(
      Object.entries(file.upstreams).map(([name, entry]) => [name, readUpstream(name, entry, origin)]),
    ),
    isBuiltIn: file.catalog === undefined,
    limits: spell(file.limits),
    billing: {
      cutAnswers: file.billing.cut_answers,
      readOnMs: file.billing.read_on,
      holdOutputTokens: file.billing.hold_output_tokens,
    },
    trustedProxies: file.trusted_proxies,
    timeouts: spell(file.timeouts, 'Ms'),
    sealKey: file.seal_key === undefined ? undefined : new Secret(file.seal_key),
    headers: file.headers,
    metrics: {
      token: file.metrics.token === undefined ? undefined : new Secret(file.metrics.token),
      accounts: file.metrics.accounts,
      keys: file.metrics.keys,
    },
    telemetry: origin.telemetry,
    credits: file.credits,
    reporting: {
      timeZone: spellZone(file.reporting.time_zone),
      weekStarts: file.reporting.week_starts,
      keepMonths: file.reporting.keep,
    },
    webhooks: file.webhooks.map((entry, index) => readWebhook(`webhooks[${index}]`, entry, origin)),
    log: file.log,
    warnings,
  })
}

function spell<Settings extends object, const Unit extends string = ''>(settings: Settings, unit = '' as Unit) {
  const entries = Object.entries(settings).map(([key, value]) => [camelCase(key) + unit, value])
  return Object.fromEntries(entries) as SettingsInCode<Settings, Unit>
}

function fileText(named: string | undefined, { files, folder }: LoadOrigin): string | undefined {
  return named === undefined ? undefined : files.get(resolve(folder, named))
}

function readTls({ cert, key }: { cert: string; key: string }, { files, folder }: LoadOrigin): TlsPair {
  return {
    cert: files.get(resolve(folder, cert)) ?? '',
    key: new Secret(files.get(resolve(folder, key)) ?? ''),
  }
}

function readPublicUrl(text: string): string {
  const { origin, pathname } = new URL(text)
  return origin + pathname.replace(/\/+$/, '')
}

function routeOf(path: string, { ca_file: ca }: { ca_file?: string | undefined }, origin: LoadOrigin): EgressRoute {
  return { proxy: origin.proxies.get(path), ca: fileText(ca, origin) }
}

function readWebhook(path: string, entry: ConfigFile['webhooks'][number], origin: LoadOrigin): Webhook {
  const { url, secret, events, below } = entry
  const meant = events ?? usualEvents
  return {
    url: new Secret(url),
    shown: showWebhook(url),
    secret: new Secret(secret),
    events: new Set(meant),
    belowNanos: meant.includes('credit_low') ? below : undefined,
    ...routeOf(path, entry, origin),
  }
}

/** Shows only the beginning of each long part of the path, because these parts often contain a secret. */
function showWebhook(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname.replace(/[^/]{9,}/g, (part) => `${part.slice(0, 3)}…`)
}

/** Returns all models of a file, chains left out. */
function entriesOf({ catalog }: ConfigFile) {
  return catalog ? modelsOf(catalog).map(({ entry }) => entry) : builtInModels
}

function readCatalog(catalog: NonNullable<ConfigFile['catalog']>, file: ConfigFile): Config['catalog'] {
  const models = catalog.models.map((entry) => (isChain(entry) ? readChain(entry) : readModel(entry, file)))
  return createCatalog(models, Date.parse(catalog.pinned) / 1000, catalog.owner)
}

type UpstreamEntry = ConfigFile['upstreams'][string]

function readUpstream(name: string, entry: UpstreamEntry, origin: LoadOrigin): Upstream {
  const { base_url: baseUrl, paths, query } = entry
  return {
    name,
    ...locationOf({ baseUrl, paths, query }),
    keyHeader: entry.key_header,
    ...routeOf(`upstreams.${name}`, entry, origin),
    accounts: entry.accounts.map((account) => readAccount(account, baseUrl, origin)),
    messagesHeaders: entry.messages_headers,
    headers: readHeaders(entry.headers),
    reuses: entry.reuse,
  }
}

function locationOf(settings: EndpointSettings): Pick<Upstream, 'baseUrl' | 'endpoints'> {
  return { baseUrl: settings.baseUrl, endpoints: endpointsOf(settings) }
}

/** The default of `key_lifetime`, in ms: how long a key from `key_command` is used. */
const keyLifetimeMs = 600_000

function readAccount(
  entry: UpstreamEntry['accounts'][number],
  baseUrl: string,
  { folder, files, env }: LoadOrigin,
): UpstreamAccount {
  const { name, key = '', key_file: keyFile, key_command: command, enabled, isolation } = entry
  const account = { name, isEnabled: enabled, ...(isolation && { isolation: new Set(isolation) }) }
  if (keyFile !== undefined) {
    const file = resolve(folder, keyFile)
    return { ...account, key: new Secret(files.get(file)?.trim() ?? ''), renewal: { file } }
  }
  const cloud = readCloud(entry, baseUrl, folder, env)
  if (cloud) return { ...account, key: new Secret(''), renewal: { cloud } }
  if (command === undefined) return { ...account, key: new Secret(key) }
  const [program = '', ...args] = command
  // If a program's name has a slash, it is a path relative to the file (ruling X4). Otherwise it is looked up in PATH.
  const whole = [program.includes('/') ? resolve(folder, program) : program, ...args]
  return {
    ...account,
    key: new Secret(''),
    renewal: { command: whole, lifetimeMs: entry.key_lifetime ?? keyLifetimeMs },
  }
}

function readCloud(
  { aws, google, azure }: CloudEntries,
  baseUrl: string,
  folder: string,
  env: NodeJS.ProcessEnv,
): CloudAccount | undefined {
  if (aws) {
    const { profile, role, external_id: externalId, session_name: sessionName, sign } = aws
    const wishes = { profile, role, externalId, sessionName }
    return { kind: 'aws', ...placeFor(baseUrl, aws, env), sign, ...withoutGaps(wishes) }
  }
  if (google) {
    const { credentials_file: file } = google
    return { kind: 'google', ...(file !== undefined && { credentialsFile: resolve(folder, file) }) }
  }
  if (!azure) return undefined
  const { tenant, client, secret, secret_file: file, scope } = azure
  return {
    ...{ kind: 'azure', scope, ...withoutGaps({ tenant, client }) },
    ...(secret !== undefined && { secret: new Secret(secret) }),
    ...(file !== undefined && { secretFile: resolve(folder, file) }),
  }
}

function withoutGaps<Values extends Record<string, string | undefined>>(values: Values) {
  const set = Object.entries(values).filter(([, value]) => value !== undefined)
  return Object.fromEntries(set) as { [Key in keyof Values]?: string }
}
