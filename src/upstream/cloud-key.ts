import { createHash } from 'node:crypto'
import { bearer, type CredentialHeaders } from '../catalog/credentials.ts'
import { type AwsCredentials, bearerSecondsMax, keepSigningKey, mintBearer, signRequest } from '../clouds/sigv4.ts'
import type { AwsAccount, CloudAccount, Upstream } from '../config/config.ts'
import { environmentProxy, parseProxy, proxyMistake } from '../config/egress.ts'
import { identifyAws, takeAws } from './clouds/aws.ts'
import { takeAzure } from './clouds/azure.ts'
import { takeGoogle } from './clouds/google.ts'
import type { CloudToken, SourceAround } from './clouds/sources.ts'
import type { DialRoute } from './dial.ts'
import type { CloudCredential, CredentialState, KeyReport, LiveKey } from './live-key.ts'

/** The time limit of a renewal. After failures, the waits grow from `retryMs` to `retryMaxMs`. All in ms. */
const takeMaxMs = 30_000
const retryMs = 5_000
const retryMaxMs = 60_000

/**
 * A credential is renewed after `renewShare` of its life, or `renewBeforeMs` before its end if that is earlier. It is
 * never renewed before half of its life.
 */
const renewShare = 0.8
const renewBeforeMs = 300_000
/** After this time, in ms, a credential that does not expire is looked up again, because its file may have changed. */
const lookAgainMs = 600_000

/** The smallest difference between a cloud's clock and our clock that counts, in ms. */
const apartMinMs = 30_000

/** The parts that the keyring gives to each key. */
type CloudSurroundings = {
  /** Returns a monotonic time in ms. */
  clockMs: () => number
  /** Unix milliseconds. */
  nowMs: () => number
  report: KeyReport
  label: string
  env: Readonly<Record<string, string | undefined>>
  /** The upstream whose proxy and certificates are used for the endpoints that give credentials. */
  upstream: Pick<Upstream, 'proxy' | 'ca'>
}

/** Returns data that identify the source of a credential. A digest replaces the secret of the configuration. */
export function cloudSourceOf(account: CloudAccount): unknown {
  if (account.kind !== 'azure' || !account.secret) return account
  return { ...account, secret: createHash('sha256').update(account.secret.reveal()).digest('hex') }
}

/**
 * A credential of a cloud. It is renewed before it expires, by one request at a time. While renewals fail, the last
 * credential stays in use until it expires. Fields are private, so that printing the object never shows a secret.
 */
export class CloudKey implements LiveKey, CloudCredential {
  readonly first: Promise<void>
  readonly #account: CloudAccount
  readonly #parts: CloudSurroundings
  #token: CloudToken | undefined
  #before: CloudToken | undefined
  #version = 0
  /** When the credential expires, by the monotonic clock. */
  #endMs = Number.NEGATIVE_INFINITY
  #dueMs = Number.NEGATIVE_INFINITY
  #startedMs = Number.NEGATIVE_INFINITY
  #failures = 0
  #trouble: string | undefined
  #running: AbortController | undefined
  /**
   * Whether the provider refused the credential. If the next credential differs, the account's health is then judged
   * anew.
   */
  #isRefused = false
  #aheadMs: number | undefined
  #upstream: CloudSurroundings['upstream']
  #signingKeys = keepSigningKey()
  /** The last bearer key that was made, and the clock difference with which it was made. */
  #minted: { token: CloudToken; aheadMs: number; key: string; untilMs: number } | undefined
  #mintedBefore: string | undefined
  #onFirst = () => {}

  constructor(account: CloudAccount, parts: CloudSurroundings) {
    this.#account = account
    this.#parts = parts
    this.#upstream = parts.upstream
    this.first = new Promise((resolve) => {
      this.#onFirst = resolve
    })
  }

  /** Takes over the proxy and certificates of the newest configuration. */
  follow(upstream: CloudSurroundings['upstream']): void {
    this.#upstream = upstream
  }

  /** The bearer token, or the id of a credential that signs. Undefined while no credential is valid. */
  get value(): string | undefined {
    const use = this.#parts.clockMs() < this.#endMs ? this.#token?.use : undefined
    return use && ('bearer' in use ? use.bearer : use.id)
  }

  get version(): number {
    return this.#version
  }

  get known(): readonly string[] {
    const minted = [this.#minted?.key, this.#mintedBefore]
    return [...[this.#token, this.#before].flatMap(wordsOf), ...minted.filter((key) => key !== undefined)]
  }

  get credential(): CloudCredential {
    return this
  }

  get isRenewing(): boolean {
    return this.#running !== undefined
  }

  get state(): CredentialState {
    const leftMs = this.#token ? this.#endMs - this.#parts.clockMs() : 0
    return {
      source: this.#token?.source,
      identity: this.#token?.identity,
      leftMs: Number.isFinite(leftMs) ? Math.max(0, leftMs) : undefined,
      aheadMs: this.#aheadMs,
    }
  }

  /** Returns the headers that sign a request or contain the bearer token. Called only while `value` is set. */
  readonly headers: CredentialHeaders = (_, parts) => {
    const { use } = this.#token!
    if ('bearer' in use) {
      // A configured header, such as the project that pays, replaces the one from the file of credentials.
      const own = (use.headers ?? []).filter(([name]) => !parts.headers.includes(name))
      return [...bearer(use.bearer, parts), ...own]
    }
    const place = this.#account as AwsAccount
    if (place.sign === 'bearer') return bearer(this.#mint(use, place.region), parts)
    const { host } = new URL(parts.baseUrl)
    return signRequest({ method: 'POST', host, ...parts }, use, place, this.#nowMs(), this.#signingKeys)
  }

  tick(): void {
    const nowMs = this.#parts.clockMs()
    if (this.#running) {
      if (nowMs - this.#startedMs < takeMaxMs) return
      this.#running.abort()
      this.#settle(() => this.#fail('it takes too long'))
    } else if (nowMs >= this.#dueMs) this.#start()
  }

  doubt(isForKey: boolean): void {
    this.#isRefused ||= isForKey
    const soonMs = this.#startedMs + retryMs
    if (!this.#running && this.#dueMs > soonMs) this.#dueMs = soonMs
  }

  renew(date: string | undefined): void {
    const before = this.#nowMs()
    this.#noteDate(date)
    if (Math.abs(this.#nowMs() - before) >= apartMinMs || this.#running) return
    this.#isRefused = true
    if (this.#parts.clockMs() >= this.#startedMs + retryMs) this.#start()
  }

  async identify(): Promise<string> {
    const { use, identity = '' } = this.#token ?? {}
    if (!use || 'bearer' in use || this.#account.kind !== 'aws') return identity
    return identifyAws(use, this.#account.region, this.#around(AbortSignal.timeout(takeMaxMs))).catch(() => identity)
  }

  close(): void {
    this.#running?.abort()
    this.#running = undefined
    this.#dueMs = Number.POSITIVE_INFINITY
    this.#onFirst()
  }

  #start(): void {
    const running = new AbortController()
    this.#running = running
    this.#startedMs = this.#parts.clockMs()
    // The result of a renewal that was given up does not count.
    const settle = (act: () => void) => {
      if (this.#running === running) this.#settle(act)
    }
    takeCloud(this.#account, this.#around(running.signal)).then(
      (token) => settle(() => this.#take(token)),
      (error: Error) => settle(() => this.#fail(error.message)),
    )
  }

  #settle(act: () => void): void {
    this.#running = undefined
    act()
    this.#onFirst()
  }

  #take(token: CloudToken): void {
    const { lifeMs } = token
    if (lifeMs !== undefined && lifeMs <= 0) {
      this.#fail(`${token.source} gives a credential that has expired`)
      return
    }
    const nowMs = this.#parts.clockMs()
    const isFirst = this.#token === undefined
    const isSame = !isFirst && wordsOf(token).join() === wordsOf(this.#token).join()
    // With a new version, the account's health is judged anew. A new secret of the same identity keeps the version,
    // because secrets change every hour. If the old secret was refused, a new secret gets a new version.
    if (isFirst || token.identity !== this.#token?.identity || (this.#isRefused && !isSame)) this.#version++
    this.#isRefused = false
    this.#failures = 0
    this.#trouble = undefined
    if (!isSame) this.#before = this.#token
    this.#token = token
    this.#endMs = lifeMs === undefined ? Number.POSITIVE_INFINITY : nowMs + lifeMs
    this.#dueMs = nowMs + (lifeMs === undefined ? lookAgainMs : renewAfterMs(lifeMs))
    if (!isFirst && !isSame) this.#parts.report('info', 'key_renewed', { account: this.#parts.label })
  }

  /** Notes a failed renewal. It is logged if its cause is new, or if the credential has expired since the last line. */
  #fail(why: string): void {
    const waitMs = Math.min(retryMaxMs, retryMs * 2 ** Math.min(this.#failures++, 10))
    this.#dueMs = this.#parts.clockMs() + waitMs
    const inUse = this.value !== undefined
    const trouble = `${inUse} ${why}`
    if (this.#trouble === trouble) return
    this.#trouble = trouble
    const { report, label } = this.#parts
    report('error', 'key_failed', { account: label, why, in_use: inUse })
  }

  /**
   * Makes a bearer key from AWS credentials. A key is reused until half its life is over, the credentials change, or
   * the cloud's clock turns out to differ.
   */
  #mint(use: AwsCredentials, region: string): string {
    const nowMs = this.#parts.clockMs()
    const token = this.#token!
    const aheadMs = this.#aheadMs ?? 0
    const last = this.#minted
    if (last?.token === token && last.aheadMs === aheadMs && last.untilMs > nowMs) return last.key
    this.#mintedBefore = last?.key
    const key = mintBearer(use, region, this.#nowMs())
    this.#minted = { token, aheadMs, key, untilMs: nowMs + (bearerSecondsMax * 1_000) / 2 }
    return key
  }

  #nowMs(): number {
    return this.#parts.nowMs() + (this.#aheadMs ?? 0)
  }

  #noteDate(date: string | undefined): void {
    // The `Date` header has whole seconds only.
    const aheadMs = Math.round((Date.parse(date ?? '') - this.#parts.nowMs()) / 1_000) * 1_000
    if (Number.isNaN(aheadMs)) return
    const believedMs = Math.abs(aheadMs) < apartMinMs ? 0 : aheadMs
    const isNews = Math.abs(believedMs - (this.#aheadMs ?? 0)) >= apartMinMs
    if (!isNews && this.#aheadMs !== undefined) return
    this.#aheadMs = believedMs
    if (isNews) this.#parts.report('info', 'clock_skew', { account: this.#parts.label, ahead_ms: believedMs })
  }

  #around(signal: AbortSignal): SourceAround {
    const { env } = this.#parts
    return {
      env,
      signal,
      nowMs: () => this.#nowMs(),
      noteDate: (date) => this.#noteDate(date),
      routeTo: (address) => routeTo(address, this.#upstream, env),
    }
  }
}

function takeCloud(account: CloudAccount, around: SourceAround): Promise<CloudToken> {
  switch (account.kind) {
    case 'aws':
      return takeAws(account, around)
    case 'google':
      return takeGoogle(account, around)
    case 'azure':
      return takeAzure(account, around)
  }
}

/** Returns the time after which a new credential is renewed, in ms. */
function renewAfterMs(lifeMs: number): number {
  return Math.max(lifeMs / 2, Math.min(lifeMs * renewShare, lifeMs - renewBeforeMs))
}

/** The secret words of a credential. The id of an AWS key is secret too, because it names the account. */
function wordsOf(token: CloudToken | undefined): string[] {
  if (!token) return []
  const { use } = token
  return 'bearer' in use ? [use.bearer] : [use.id, use.secret, ...(use.token ? [use.token] : [])]
}

/**
 * Returns the route to a cloud's endpoint: through the upstream's proxy, or else through the environment's proxy. The
 * upstream's certificates are trusted besides the usual ones, because the upstream is another host.
 */
function routeTo(address: URL, { proxy, ca }: Pick<Upstream, 'proxy' | 'ca'>, env: SourceAround['env']): DialRoute {
  const said = proxy?.source.startsWith('upstreams.') ? proxy.url.reveal() : environmentProxy(address.href, env)?.value
  const usual = ca === undefined ? [] : process.getBuiltinModule('node:tls').getCACertificates('default')
  return {
    ...(said !== undefined && proxyMistake(said) === undefined && { proxy: new URL(parseProxy(said)) }),
    ...(ca !== undefined && { ca: [...usual, ca].join('\n') }),
  }
}
