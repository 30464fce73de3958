import type { Zone } from '../accounts/calendar.ts'
import type { DeclaredLabels } from '../accounts/labels.ts'
import type { CreditWords } from '../accounts/statement.ts'
import type { WebhookEvent } from '../accounts/warnings.ts'
import type { Catalog } from '../catalog/model.ts'
import type { EgressProxy } from './egress.ts'
import type { Endpoints } from './endpoints.ts'
import type { ConfigProblem } from './problem.ts'
import type { ConfigFile, SettingsInCode } from './schema.ts'
import type { SignInSettings } from './sign-in.ts'
import type { StorePlace } from './store-place.ts'
import type { Address, Secret } from './values.ts'

export type { EgressProxy } from './egress.ts'
export type { SignInSettings } from './sign-in.ts'
export type { StorePlace } from './store-place.ts'
export { type Address, Secret } from './values.ts'

/** An account of ours at a provider, which we pay with; never a client's. */
export type UpstreamAccount = {
  name: string
  /** Wrapped so that no log line can print it. A renewed key has its value at the time of reading, or is empty. */
  key: Secret
  /** The source of the key, if it is not in the configuration itself. */
  renewal?: KeyRenewal
  /** If false, the account gets no requests. */
  isEnabled: boolean
  /** The customers, by name or id, that it is reserved for (ruling Y18); undefined: it serves all. */
  isolation?: ReadonlySet<string>
}

/** The source of a key that changes while the gateway runs: a file, by its absolute path, or a command. */
export type KeyRenewal =
  | { file: string }
  /** The program and its arguments, run without a shell. It runs again when its key is `lifetimeMs` old. */
  | { command: readonly string[]; lifetimeMs: number }
  | { cloud: CloudAccount }

/** An account at a cloud, whose credentials are found by the cloud's own rules and end by themselves. */
export type CloudAccount = AwsAccount | GoogleAccount | AzureAccount

export type AwsAccount = {
  kind: 'aws'
  /** The place that a signature is for. */
  region: string
  service: string
  /** Whether each request is signed, or a key is minted that is shown with it. */
  sign: 'request' | 'bearer'
  /** A profile of the shared files. */
  profile?: string
  /** The ARN of a role that is taken over the credentials. */
  role?: string
  externalId?: string
  sessionName?: string
}

export type GoogleAccount = {
  kind: 'google'
  /** Absolute. */
  credentialsFile?: string
}

export type AzureAccount = {
  kind: 'azure'
  tenant?: string
  client?: string
  secret?: Secret
  /** Absolute. */
  secretFile?: string
  scope: string
}

export type Upstream = {
  name: string
  /** Without a slash at the end. */
  baseUrl: string
  /** The path and query of requests, by wire (ruling P8). */
  endpoints: Endpoints
  /** The header for the key, in lower case; undefined for the usual one of the wire. */
  keyHeader: string | undefined
  /** Undefined to connect directly. */
  proxy: EgressProxy | undefined
  /** Certificates in PEM that are trusted instead of the system's. */
  ca: string | undefined
  accounts: readonly UpstreamAccount[]
  /** The spelling of the version and beta headers of the messages wire (ruling N3). */
  messagesHeaders: 'anthropic' | 'msgwire'
  /** Headers that are sent with every request, names in lower case. */
  headers: ReadonlyMap<string, string>
  /** Whether a connection serves more than one request (ruling Y14). */
  reuses: boolean
}

/** A certificate with its chain, and its key, both in PEM. */
export type TlsPair = { cert: string; key: Secret }

/** The address of a collector for one signal. */
export type OtlpTarget = {
  url: string
  /** Header names in lower case. */
  headers: ReadonlyMap<string, Secret>
  timeoutMs: number
}

/** The text of a configuration, its name in messages, and its file if it has one. */
export type ConfigSource = { readonly text: Secret; readonly name: string; readonly file?: string }

/** All settings after checks, frozen, with every default. Times in ms, sizes in bytes. `schema.ts` says what each is for. */
export type Config = {
  /** Absolute path of the file it was read from; undefined without a file. */
  file: string | undefined
  listen: Address
  /** The certificate of the public listener; undefined for plain HTTP. */
  tls: TlsPair | undefined
  adminListen: Address
  /** The URL at which clients reach the gateway, with its path and without `/v1`; undefined if nobody has named it (Y19). */
  apiUrl: string | undefined
  /** Whether the public listener has pages for the owners of keys and sessions (ruling Y19). */
  ownPages: boolean
  /** The address of those pages that errors name; undefined without pages, or if nobody has said where clients reach the gateway. */
  ownPage: string | undefined
  /** Values that requests may be labelled with (ruling Y21). */
  labels: DeclaredLabels
  /** The names of the plans that accounts may have (ruling C11). */
  plans: readonly string[]
  /** 3: entries have what answers report of their cost, whatever else is configured. */
  ledgerForm: 3 | undefined
  /** Whether operators see the provider's scrubbed text of an error in `explain` (CON-4). */
  explainUpstreamText: boolean
  /** The public URL of the admin listener, with its path and without a slash at the end. */
  adminUrl: string | undefined
  /** The origin, with a path if it has one, at which servers of the same store on other machines reach it (ruling X9). */
  adminReplicaUrl: string | undefined
  /** The certificate of the admin listener; undefined: it speaks plain HTTP, on loopback. */
  adminTls: (TlsPair & { /** Absolute. */ certFile: string }) | undefined
  /** How people sign in; undefined: they do not (ruling Y19). */
  signIn: SignInSettings | undefined
  /** The default is relative to the working folder (ruling X8). */
  store: StorePlace
  /** The store's place in releases before 0.2.0, beside the configuration, if that is another one (ruling X8). */
  earlierStore: string | undefined
  /** Absolute path of the folder for the spool and the lock: the store's own with SQLite (ruling X13). */
  stateDir: string
  /** Digest of the settings that all replicas share. It does not depend on the order of the keys, or on our version. */
  digest: string
  catalog: Catalog
  upstreams: ReadonlyMap<string, Upstream>
  /** True while the built-in simulator serves the built-in catalog, because no configuration names a model. */
  isBuiltIn: boolean
  limits: SettingsInCode<ConfigFile['limits']>
  billing: {
    /** Whether an answer is billed if its upstream fails after output was delivered (ruling C4). */
    cutAnswers: 'bill' | 'waive'
    /** The longest time to read a started stream on for its figures after its client has left (ruling C12); 0: never. */
    readOnMs: number
    /** The most output tokens that a hold assumes (ruling C2); `cap`: those that the request allows (ruling C16). */
    holdOutputTokens: number | 'cap'
  }
  /** Addresses or CIDR ranges whose `x-forwarded-for` is trusted. */
  trustedProxies: readonly string[]
  timeouts: SettingsInCode<ConfigFile['timeouts'], 'Ms'>
  /** The key of sealed signatures (ruling T7): 32 bytes as base64; undefined: made once in the data folder. */
  sealKey: Secret | undefined
  /** Headers of answers beyond the specification (ruling R13). */
  headers: { balance: boolean }
  metrics: { token: Secret | undefined; accounts: boolean; keys: boolean }
  telemetry: {
    /** The collector of each signal; undefined to send nothing. */
    traces: OtlpTarget | undefined
    metrics: OtlpTarget | undefined
    spansEveryMs: number
    metricsEveryMs: number
    /** The most requests that wait to be exported. Further ones are dropped and counted. */
    queueMax: number
    /** The share of traces beginning here that are exported, 0 to 1. */
    sampleShare: number
    /** Attributes of this process besides our own. */
    resource: ReadonlyMap<string, string>
    /** `compat` exports the old histogram of tokens as well. */
    genai: 'standard' | 'compat'
    /** Whether upstreams get the trace header. */
    propagate: boolean
  }
  /** How credits are called on statements, and who sells them. */
  credits: CreditWords
  /** The time zone of budgets and reports, and the number of whole months of figures that are kept for reports. */
  reporting: Zone & { keepMonths: number }
  /** The receivers of warnings (ruling X15). */
  webhooks: readonly Webhook[]
  log: { level: 'info' | 'error'; format: 'auto' | 'json' | 'pretty' }
  /** Settings that are allowed and are probably a mistake. */
  warnings: readonly ConfigProblem[]
}

export type Webhook = {
  /** The whole URL is secret, because its path and query may be known to the receiver only. */
  url: Secret
  /** The URL without query and fragment. */
  shown: string
  /** The secret of the signature. */
  secret: Secret
  events: ReadonlySet<WebhookEvent>
  /** In nano-credits: a message is sent when the credit of an account falls below this. */
  belowNanos: bigint | undefined
}
