import type { Zone } from '../accounts/calendar.ts'
import type { DeclaredLabels } from '../accounts/labels.ts'
import type { CreditWords } from '../accounts/statement.ts'
import type { WebhookEvent } from '../accounts/warnings.ts'
import type { Catalog } from '../catalog/model.ts'
import type { EgressRoute } from './egress.ts'
import type { Endpoints } from './endpoints.ts'
import type { ConfigProblem } from './problem.ts'
import type { ConfigFile, SettingsInCode } from './schema.ts'
import type { SignInSettings } from './sign-in.ts'
import type { StorePlace } from './store-place.ts'
import type { Address, Secret } from './values.ts'

export type { SignInSettings } from './sign-in.ts'
export type { StorePlace } from './store-place.ts'
export { type Address, Secret } from './values.ts'

/** An account of the operator at a provider, with which the gateway pays. It is not an account of a client. */
export type UpstreamAccount = {
  name: string
  /** The key, wrapped so that no log line can contain it. Empty if a command or a cloud supplies the key. */
  key: Secret
  /** The source of a key that the configuration does not contain. */
  renewal?: KeyRenewal
  /** If false, the account gets no requests. */
  isEnabled: boolean
  /** The clients' accounts, by name or id, that this upstream account serves (ruling Y18). Undefined: all of them. */
  isolation?: ReadonlySet<string>
}

/** The source of a key that can change while the gateway runs: a file (absolute path), a command, or a cloud. */
export type KeyRenewal =
  | { file: string }
  /** A program and its arguments, run without a shell. The program runs again when its key is `lifetimeMs` old. */
  | { command: readonly string[]; lifetimeMs: number }
  | { cloud: CloudAccount }

/** An account at a cloud. Its credentials expire, and are found by the cloud's own rules. */
export type CloudAccount = AwsAccount | GoogleAccount | AzureAccount

export type AwsAccount = {
  kind: 'aws'
  /** Requests are signed for this AWS region and for this AWS service. */
  region: string
  service: string
  /** `request`: each request is signed. `bearer`: a short-term key is made and sent with requests. */
  sign: 'request' | 'bearer'
  /** A profile of AWS's shared files. */
  profile?: string
  /** The ARN of a role to assume with the credentials. */
  role?: string
  externalId?: string
  sessionName?: string
}

export type GoogleAccount = {
  kind: 'google'
  /** An absolute path. */
  credentialsFile?: string
}

export type AzureAccount = {
  kind: 'azure'
  tenant?: string
  client?: string
  secret?: Secret
  /** The absolute path of a file with the secret of the application. */
  secretFile?: string
  scope: string
}

export type Upstream = EgressRoute & {
  name: string
  /** The URL without a final slash. */
  baseUrl: string
  /** The paths of requests with their query, by wire (ruling P8). */
  endpoints: Endpoints
  /** The header for the key, in lower case. Undefined: the header of the wire. */
  keyHeader: string | undefined
  accounts: readonly UpstreamAccount[]
  /** The spelling of the version and beta headers of the messages wire (ruling N3). */
  messagesHeaders: 'anthropic' | 'msgwire'
  /** Headers that are sent with every request to the upstream. Their names are in lower case. */
  headers: ReadonlyMap<string, string>
  /** Whether a connection serves more than one request (ruling Y14). */
  reuses: boolean
}

/** A certificate with its chain, and its key, both in PEM. */
export type TlsPair = { cert: string; key: Secret }

/** The endpoint of an OpenTelemetry collector for the traces or for the metrics. */
export type OtlpTarget = {
  url: string
  /** Header names in lower case. */
  headers: ReadonlyMap<string, Secret>
  timeoutMs: number
}

/** The text of a configuration, its name in messages, and its file if there is one. */
export type ConfigSource = { readonly text: Secret; readonly name: string; readonly file?: string }

/** All settings, checked, frozen and with defaults. Times are in ms, sizes in bytes. `schema.ts` describes them. */
export type Config = {
  /** The absolute path of the file that was read. Undefined without a file. */
  file: string | undefined
  /** The file, or the variable with the text of the configuration. Undefined without a configuration. */
  source: string | undefined
  listen: Address
  /** The certificate of the public listener. If undefined, the listener speaks plain HTTP. */
  tls: TlsPair | undefined
  adminListen: Address
  /** The URL at which clients reach the gateway, with path and without `/v1` (Y19). Undefined if not set. */
  apiUrl: string | undefined
  /** Whether the public listener serves pages for people who have a key or a session (ruling Y19). */
  ownPages: boolean
  /** The URL of the pages for owners of keys. Error messages name this URL. Undefined without pages or `apiUrl`. */
  ownPage: string | undefined
  /** For each dimension of labels: the values that can be chosen (ruling Y21). */
  labels: DeclaredLabels
  /** The names of the plans that accounts may have (ruling C11). */
  plans: readonly string[]
  /** 3: every new ledger entry has form 3, which records the cost that an answer reports. Undefined: only if needed. */
  ledgerForm: 3 | undefined
  /** Whether `explain` shows operators the provider's error text, without secrets (CON-4). */
  explainUpstreamText: boolean
  /** The public URL of the admin listener, with its path and without a final slash. */
  adminUrl: string | undefined
  /** The URL at which servers of the same store on other machines reach the admin listener (ruling X9). */
  adminReplicaUrl: string | undefined
  /** The certificate of the admin listener. If undefined, the listener speaks plain HTTP. */
  adminTls: (TlsPair & { /** An absolute path. */ certFile: string }) | undefined
  /** The settings of sign-in (ruling Y19). Undefined: people cannot sign in. */
  signIn: SignInSettings | undefined
  /** The place of the store. The default is relative to the working folder (ruling X8). */
  store: StorePlace
  /**
   * The default place of the store before 0.2.0, which was in the folder of the configuration. Undefined if today's
   * default is the same path (ruling X8).
   */
  earlierStore: string | undefined
  /** The absolute path of the folder for the server's lock and spool. SQLite: the store's folder (ruling X13). */
  stateDir: string
  /** A digest of the settings that replicas share. The order of keys and the version of triwire do not change it. */
  digest: string
  catalog: Catalog
  upstreams: ReadonlyMap<string, Upstream>
  /** True if the built-in simulator serves the built-in catalog, because the configuration has no catalog. */
  isBuiltIn: boolean
  limits: SettingsInCode<ConfigFile['limits']>
  billing: {
    /** Whether an answer is billed if the upstream fails after output was delivered (ruling C4). */
    cutAnswers: 'bill' | 'waive'
    /** How long a stream is read for its token counts after its client has left (ruling C12). 0: not at all. */
    readOnMs: number
    /** The most output tokens for which a hold sets credit aside (C2). `cap`: the request's maximum (C16). */
    holdOutputTokens: number | 'cap'
  }
  /** Addresses or CIDR ranges whose `x-forwarded-for` is trusted. */
  trustedProxies: readonly string[]
  timeouts: SettingsInCode<ConfigFile['timeouts'], 'Ms'>
  /**
   * The key that seals signatures in answers (T7): 32 bytes in base64. Undefined: the gateway makes one beside the
   * store.
   */
  sealKey: Secret | undefined
  /**
   * Whether responses have a header with the balance. The specifications of the wires have no such header (ruling R13).
   */
  headers: { balance: boolean }
  metrics: { token: Secret | undefined; accounts: boolean; keys: boolean }
  telemetry: {
    /** The collectors for traces and for metrics. Data without a collector are not sent. */
    traces: OtlpTarget | undefined
    metrics: OtlpTarget | undefined
    spansEveryMs: number
    metricsEveryMs: number
    /** The most requests that wait for export. More requests are dropped and counted. */
    queueMax: number
    /** The share of traces to export, 0 to 1. It applies to traces that begin in the gateway. */
    sampleShare: number
    /** Resource attributes of this process, from `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`. */
    resource: ReadonlyMap<string, string>
    /** `compat` also exports the older histogram of tokens. */
    genai: 'standard' | 'compat'
    /** Whether requests to upstreams have the trace header. */
    propagate: boolean
  }
  /** The name and the seller of credits, for statements. */
  credits: CreditWords
  /** The time zone of budgets and reports, and the number of whole months for which figures are kept. */
  reporting: Zone & { keepMonths: number }
  /** The receivers of webhook messages (ruling X15). */
  webhooks: readonly Webhook[]
  log: { level: 'info' | 'error'; format: 'auto' | 'json' | 'pretty' }
  /** Settings that are allowed, but are probably a mistake. */
  warnings: readonly ConfigProblem[]
}

export type Webhook = EgressRoute & {
  /** The whole URL. It is secret, because its path or query may contain a secret of the receiver. */
  url: Secret
  /** The URL in a form that may be shown: without query and fragment, and with long parts of the path shortened. */
  shown: string
  /** The secret with which the messages are signed. */
  secret: Secret
  events: ReadonlySet<WebhookEvent>
  /** The message `credit_low` is sent when the balance of an account falls below this amount, in nano-credits. */
  belowNanos: bigint | undefined
}
