import type { Catalog } from '../catalog/catalog.ts'
import type { Problem } from './problem.ts'

export type Address = { host: string; port: number }

/** A paying account of ours at a provider; never a client's. */
export type UpstreamAccount = {
  name: string
  /** Wrapped so that no log line can print it. */
  key: Secret
  /** False: it is asked for nothing. */
  isEnabled: boolean
}

export type Upstream = {
  name: string
  /** Without a trailing slash and without `/v1`; the wires' paths are appended. */
  baseUrl: string
  accounts: readonly UpstreamAccount[]
  /** How the version and beta headers of the messages wire are spelled towards it (ruling N3). */
  messagesHeaders: 'anthropic' | 'msgwire'
  /** Headers sent as they are with every request, names in lower case. */
  headers: ReadonlyMap<string, string>
}

/** Everything that can be set, checked, frozen, with every default. Times in ms, sizes in bytes. */
export type Config = {
  /** Absolute path of the file it was read from; undefined where there was none. */
  file: string | undefined
  listen: Address
  adminListen: Address
  /** Absolute path of the SQLite file. */
  store: string
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
  log: { level: 'info' | 'error'; format: 'auto' | 'json' | 'pretty' }
  /** What is allowed and hardly meant. */
  warnings: readonly Problem[]
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
