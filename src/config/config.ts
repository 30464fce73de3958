import type { Zone } from '../accounts/calendar.ts'
import type { WebhookEvent } from '../accounts/warnings.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Endpoints } from './endpoints.ts'
import type { ConfigProblem } from './problem.ts'

export type Address = { host: string; port: number }

/** A paying account of ours at a provider; never a client's. */
export type UpstreamAccount = {
  name: string
  /** Wrapped so that no log line can print it. Where it is renewed: what it was when the configuration was read, or empty. */
  key: Secret
  /** Where it comes from, if not from the configuration itself. */
  renewal?: KeyRenewal
  /** False: it is asked for nothing. */
  isEnabled: boolean
}

/** A key that changes while the gateway runs: it is what a file holds, by its absolute path, or what a command prints. */
export type KeyRenewal =
  | { file: string }
  /** The program and its arguments; no shell. It is run again when its key has been in use for so long. */
  | { command: readonly string[]; lifetimeMs: number }

/** Who asks an upstream for us. */
export type EgressProxy = {
  /** With credentials, where it wants some. */
  url: Secret
  /** The key of the file, or the environment variable, that says so. */
  source: string
}

export type Upstream = {
  name: string
  /** Without a slash at its end. */
  baseUrl: string
  /** Where requests go, by wire: path and query (ruling P8). */
  endpoints: Endpoints
  /** The header that the key is sent in, in lower case; undefined: the one that the wire's servers look into. */
  keyHeader: string | undefined
  /** Undefined: it is asked directly. */
  proxy: EgressProxy | undefined
  /** Certificates in PEM that are trusted instead of the system's. */
  ca: string | undefined
  accounts: readonly UpstreamAccount[]
  /** How the version and beta headers of the messages wire are spelled towards it (ruling N3). */
  messagesHeaders: 'anthropic' | 'msgwire'
  /** Headers sent as they are with every request, names in lower case. */
  headers: ReadonlyMap<string, string>
  /** Whether a connection serves more than one request (ruling Y14). */
  reuses: boolean
}

/** Where accounts and ledger are: a file that one server has, or a database in PostgreSQL that replicas share (ruling X7). */
export type StorePlace =
  /** The file's absolute path. */
  | { engine: 'sqlite'; path: string; shown: string }
  /** `shown` has no password: for messages, the log, and whatever else is read (ruling X13). */
  | { engine: 'postgres'; url: Secret; shown: string }

/** A certificate with its chain and its key, both in PEM. */
export type TlsPair = { cert: string; key: Secret }

/** A collector's address for one signal. */
export type OtlpTarget = {
  url: string
  /** Names in lower case. */
  headers: ReadonlyMap<string, Secret>
  timeoutMs: number
}

/** What a configuration is read from, how messages call it, and the file where it is one. */
export type ConfigSource = { readonly text: Secret; readonly name: string; readonly file?: string }

/** Everything that can be set, checked, frozen, with every default. Times in ms, sizes in bytes. */
export type Config = {
  /** Absolute path of the file it was read from; undefined where there was none. */
  file: string | undefined
  /** What it says, for processes that take the same; undefined where there is none. */
  source: ConfigSource | undefined
  listen: Address
  /** What the public listener proves itself with; undefined: it speaks plain HTTP. */
  tls: TlsPair | undefined
  adminListen: Address
  /** Where people reach it, with the path before its own and without a slash at the end. */
  adminUrl: string | undefined
  /** What it proves itself with; undefined: it speaks plain HTTP, on loopback. */
  adminTls: (TlsPair & { /** Absolute. */ certFile: string }) | undefined
  /** The default is relative to the working folder (ruling X8). */
  store: StorePlace
  /** Where releases before 0.2.0 had the file, where that is another place: beside the configuration (ruling X8). */
  earlierStore: string | undefined
  /** Absolute path of the folder for the spool and the lock: the store's own with SQLite (ruling X13). */
  stateDir: string
  /** Of what is the same for all replicas; equal whatever the order of the keys, and from one version of us to the next. */
  digest: string
  catalog: Catalog
  upstreams: ReadonlyMap<string, Upstream>
  /** True while the built-in catalog is served by the built-in simulator: no configuration names a model. */
  isBuiltIn: boolean
  limits: {
    requestsPerMinute: number
    failedAuthPerMinute: number
    bodyBytesMax: number
    connectionsMax: number
  }
  billing: {
    /** An upstream's failure after output was delivered (ruling C4). */
    cutAnswers: 'bill' | 'waive'
    /** How long a started stream is read on for its figures when its client has left (ruling C12); 0: never. */
    readOnMs: number
    /** Output tokens a hold assumes at most (ruling C2); `cap`: what the request's cap allows (ruling C16). */
    holdOutputTokens: number | 'cap'
  }
  /** Addresses or CIDR ranges whose `x-forwarded-for` is believed. */
  trustedProxies: readonly string[]
  timeouts: {
    headersMs: number
    bodyMs: number
    bodyGapMs: number
    lingerMs: number
    keepAliveMs: number
    writeStallMs: number
    connectMs: number
    firstByteStreamMs: number
    firstByteJsonMs: number
    idleMs: number
    /** Without a data event; comments and pings do not count. */
    progressMs: number
    totalMs: number
    settleWindowMs: number
    settleDeadlineMs: number
    drainDelayMs: number
    drainDeadlineMs: number
    /** Silence towards a client before a keep-alive (ruling U4). */
    pingMs: number
  }
  /** Sealed signatures (ruling T7): 32 bytes as base64; undefined: made once in the data folder. */
  sealKey: Secret | undefined
  /** Which headers an answer has beyond the specification (ruling R13). */
  headers: { balance: boolean }
  metrics: { token: Secret | undefined; accounts: boolean; keys: boolean }
  telemetry: {
    /** Where each signal is sent; undefined: nowhere. */
    traces: OtlpTarget | undefined
    metrics: OtlpTarget | undefined
    spansEveryMs: number
    metricsEveryMs: number
    /** Requests that wait to be sent; what else comes is dropped and counted. */
    queueMax: number
    /** Of the traces that begin here, so many are sent: from 0 to 1. */
    sampleShare: number
    /** Beside what we say of ourselves, by attribute. */
    resource: ReadonlyMap<string, string>
    /** `compat`: the old histogram of tokens as well. */
    genai: 'standard' | 'compat'
    /** Upstreams are told the trace. */
    propagate: boolean
  }
  /** Whose days budgets and reports count in, and how many whole months of figures are kept for reports. */
  reporting: Zone & { keepMonths: number }
  /** Who is told what is to be known (ruling X15). */
  webhooks: readonly Webhook[]
  log: { level: 'info' | 'error'; format: 'auto' | 'json' | 'pretty' }
  /** What is allowed and hardly meant. */
  warnings: readonly ConfigProblem[]
}

export type Webhook = {
  /** Whole: its path and query may be what only the receiver knows. */
  url: Secret
  /** The same without query and fragment. */
  shown: string
  /** What it is signed with. */
  secret: Secret
  events: ReadonlySet<WebhookEvent>
  /** Credits below which it is told of an account, in nano-credits. */
  belowNanos: bigint | undefined
}

/** A value that prints as `[secret]` wherever it is printed by accident. */
export class Secret {
  readonly #value: string
  constructor(value: string) {
    this.#value = value
  }
  /** The value itself; call it only where it is sent or hashed. */
  reveal(): string {
    return this.#value
  }
  toString(): string {
    return '[secret]'
  }
  toJSON(): string {
    return '[secret]'
  }
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]'
  }
}
