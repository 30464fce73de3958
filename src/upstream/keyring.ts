import { readFile, stat } from 'node:fs/promises'
import type { KeyRenewal, Secret, Upstream, UpstreamAccount } from '../config/config.ts'
import { keyMistake } from '../config/values.ts'
import { CloudKey, cloudSourceOf } from './cloud-key.ts'
import { type CommandEnd, runCommand } from './key-command.ts'
import type { KeyFinder, KeyReport, LiveKey } from './live-key.ts'

/** The time between two looks at a key file, in ms. */
const lookEveryMs = 1_000

/** The time limit of a command, and the shortest and longest pause before a failed command is repeated. All in ms. */
const commandMaxMs = 30_000
const retryMs = 5_000
const retryMaxMs = 60_000

/**
 * How many retired keys are remembered at most, for requests that still use them. While one request runs, reloads
 * retire fewer keys than this.
 */
const retiredMax = 1_000

export type Keyring = ReturnType<typeof createKeyring>

/** A key that is read anew from its source. */
type OwnedKey = RenewedKey | CloudKey

/**
 * The keys that change while the process runs. They outlive the configuration, so that a reload does not run commands
 * again.
 * @param clockMs monotonic
 * @param nowMs Unix milliseconds
 * @param env the environment variables, which may name cloud credentials
 * @param isHeard whether to report the last line of a failed command's error output, which may hold secrets
 */
export function createKeyring(
  clockMs: () => number,
  report: KeyReport,
  nowMs: () => number = Date.now,
  env: Readonly<Record<string, string | undefined>> = process.env,
  isHeard = false,
) {
  const renewed = new Map<string, OwnedKey>()
  /** Keys of earlier configurations, for requests that began under them. They are not renewed. */
  const retired = new Map<string, OwnedKey>()
  return {
    /** Returns the key with its present value. It starts no command and reads no source. */
    keyOf(account: UpstreamAccount): LiveKey {
      const id = idOf(account)
      const key = id === undefined ? undefined : (renewed.get(id) ?? retired.get(id))
      return key ?? fixedKey(account)
    },
    /**
     * Watches the key sources of these upstreams, and no others. Keys from files take the values that were read with
     * the new configuration.
     */
    adopt: (upstreams: Iterable<Upstream>): void => retireOthers(readAll(upstreams)),
    /** Watches only the keys of these upstreams from now on. Commands for other upstreams end. */
    keep: (upstreams: Iterable<Upstream>): void => retireOthers(findAll(upstreams).map(({ key }) => key)),
    /**
     * Starts to read the keys of upstreams.
     * @returns when each command and each cloud has answered or failed. Files are not waited for
     */
    async prepare(upstreams: Iterable<Upstream>): Promise<void> {
      const found = readAll(upstreams)
      for (const key of found) key.tick()
      await Promise.all(found.map((key) => key.first))
    },
    tick(): void {
      for (const key of renewed.values()) key.tick()
    },
    close(): void {
      for (const key of renewed.values()) key.close()
    },
  }

  /** Returns the keys of these upstreams. Keys from files take the values that were read with the configuration. */
  function readAll(upstreams: Iterable<Upstream>): OwnedKey[] {
    return findAll(upstreams).map(({ key, account }) => {
      if (key instanceof RenewedKey) key.take(account.key)
      return key
    })
  }

  function findAll(upstreams: Iterable<Upstream>): { key: OwnedKey; account: UpstreamAccount }[] {
    const seen = new Set<OwnedKey>()
    return [...upstreams].flatMap((upstream) =>
      upstream.accounts.flatMap((account) => {
        const key = find(account, upstream)
        if (!key) return []
        // If several upstreams have the same source, the source uses the proxy and certificates of the first.
        if (key instanceof CloudKey && !seen.has(key)) key.follow(upstream)
        seen.add(key)
        return { key, account }
      }),
    )
  }

  function retireOthers(named: readonly OwnedKey[]): void {
    const kept = new Set(named)
    for (const [id, key] of renewed) {
      if (kept.has(key)) continue
      renewed.delete(id)
      key.close()
      retired.set(id, key)
      if (retired.size > retiredMax) retired.delete(retired.keys().next().value!)
    }
  }

  function find(account: UpstreamAccount, upstream: Upstream): OwnedKey | undefined {
    const id = idOf(account)
    if (id === undefined) return undefined
    const renewal = account.renewal!
    const key = renewed.get(id) ?? open(renewal, `${upstream.name}/${account.name}`, upstream)
    if (key instanceof RenewedKey) key.follow(renewal)
    renewed.set(id, key)
    retired.delete(id)
    return key
  }

  /** Opens the source of a key. @param label the key's name in the log */
  function open(renewal: KeyRenewal, label: string, upstream: Upstream): OwnedKey {
    if ('cloud' in renewal) return new CloudKey(renewal.cloud, { clockMs, nowMs, report, label, env, upstream })
    const around = { clockMs, report, label }
    return 'file' in renewal ? new FileKey(renewal.file, around) : new CommandKey(renewal, around, isHeard)
  }
}

/** Returns the source of a key; undefined if the key does not change, or if its account is disabled. */
function idOf({ renewal, isEnabled }: UpstreamAccount): string | undefined {
  return renewal && isEnabled ? sourceOf(renewal) : undefined
}

/** Returns a text that identifies the source of a key. The lifetime of keys is not part of this text. */
export function sourceOf(renewal: KeyRenewal): string {
  if ('cloud' in renewal) return JSON.stringify(cloudSourceOf(renewal.cloud))
  return JSON.stringify('file' in renewal ? { file: renewal.file } : { command: renewal.command })
}

/** Finds the key that the configuration itself contains. A key from a file, a command or a cloud has no value here. */
export const fixedKey: KeyFinder = ({ key, renewal }) => new FixedKey(renewal ? undefined : key)

class FixedKey implements LiveKey {
  readonly #value: string | undefined
  readonly version = 0

  constructor(key: Secret | undefined) {
    this.#value = key?.reveal()
  }

  get value(): string | undefined {
    return this.#value
  }

  get known(): readonly string[] {
    return this.#value ? [this.#value] : []
  }

  doubt(): void {}
}

type Surroundings = { clockMs: () => number; report: KeyReport; label: string }

/** The common part of keys from files and from commands. Fields are private, so that printing never shows a key. */
abstract class RenewedKey implements LiveKey {
  /** Resolves when the key may be used. A key file may be used at once, because it is read with the configuration. */
  abstract readonly first: Promise<void>
  protected readonly clockMs: () => number
  readonly #report: KeyReport
  readonly #label: string
  #value: string | undefined
  #before: string | undefined
  #version = 0
  #trouble: string | undefined

  constructor({ clockMs, report, label }: Surroundings) {
    this.clockMs = clockMs
    this.#report = report
    this.#label = label
  }

  abstract tick(): void
  abstract doubt(): void
  abstract close(): void

  /** Called after a reload with the newest settings of renewal. Kinds of keys without such settings ignore the call. */
  follow(_renewal: KeyRenewal): void {}

  get value(): string | undefined {
    return this.#value
  }

  get version(): number {
    return this.#version
  }

  get known(): readonly string[] {
    return [this.#value, this.#before].filter((key) => key !== undefined)
  }

  /** Uses the configuration's value of the key, unless this value is empty. */
  take(key: Secret): void {
    const value = key.reveal()
    if (value) this.#set(value)
  }

  /** Takes a key. @param tell turns a mistake into the cause for the log @returns whether the text is a valid key */
  protected takeText(text: string, tell = (mistake: string) => mistake): boolean {
    const value = text.trim()
    const mistake = keyMistake(value)
    if (mistake) {
      this.fail(tell(mistake))
      return false
    }
    this.#trouble = undefined
    this.#set(value)
    return true
  }

  /** Notes that no new key could be read. The previous key stays in use. Each cause is logged once. */
  protected fail(why: string): void {
    if (this.#trouble === why) return
    this.#trouble = why
    this.#report('error', 'key_failed', { account: this.#label, why, in_use: this.#value !== undefined })
  }

  #set(value: string): void {
    if (value === this.#value) return
    const isFirst = this.#value === undefined
    this.#before = this.#value
    this.#value = value
    this.#version++
    if (!isFirst) this.#report('info', 'key_renewed', { account: this.#label })
  }
}

/** A key in a file. The file is checked every second, and read only if it has changed. */
class FileKey extends RenewedKey {
  readonly first = Promise.resolve()
  readonly #path: string
  #seen = ''
  #dueMs = Number.NEGATIVE_INFINITY
  #isLooking = false

  constructor(path: string, surroundings: Surroundings) {
    super(surroundings)
    this.#path = path
  }

  tick(): void {
    const nowMs = this.clockMs()
    if (this.#isLooking || nowMs < this.#dueMs) return
    this.#dueMs = nowMs + lookEveryMs
    this.#isLooking = true
    void this.#look()
      .catch((error: NodeJS.ErrnoException) => this.fail(error.code ?? 'it cannot be read'))
      .finally(() => {
        this.#isLooking = false
      })
  }

  override take(key: Secret): void {
    const { version } = this
    super.take(key)
    // The configuration was perhaps read before the last change of the file. So the file is read again.
    if (this.version !== version) this.doubt()
  }

  doubt(): void {
    this.#seen = ''
    this.#dueMs = Number.NEGATIVE_INFINITY
  }

  close(): void {}

  async #look(): Promise<void> {
    const { mtimeNs, ctimeNs, ino, size } = await stat(this.#path, { bigint: true })
    const seen = `${mtimeNs} ${ctimeNs} ${ino} ${size}`
    if (seen === this.#seen) return
    // The times were read before the file. If the file changes during the read, the next look finds other times.
    this.takeText(await readFile(this.#path, 'utf8'))
    this.#seen = seen
  }
}

/** A command that runs again when its key's lifetime is over. The old key stays in use until a new one is printed. */
class CommandKey extends RenewedKey {
  readonly first: Promise<void>
  readonly #command: readonly string[]
  #lifetimeMs: number
  /** The time at which the command printed the current key. */
  #toldMs = Number.NEGATIVE_INFINITY
  #dueMs = Number.NEGATIVE_INFINITY
  #startedMs = Number.NEGATIVE_INFINITY
  readonly #isHeard: boolean
  #failures = 0
  #running: { stop(): void } | undefined
  #onFirst = () => {}

  constructor(
    { command, lifetimeMs }: { command: readonly string[]; lifetimeMs: number },
    around: Surroundings,
    isHeard: boolean,
  ) {
    super(around)
    this.#isHeard = isHeard
    this.#command = command
    this.#lifetimeMs = lifetimeMs
    this.first = new Promise((resolve) => {
      this.#onFirst = resolve
    })
  }

  tick(): void {
    const nowMs = this.clockMs()
    if (this.#running) {
      if (nowMs - this.#startedMs < commandMaxMs) return
      this.#running.stop()
      this.#takeEnd({ why: 'it takes too long' })
    } else if (nowMs >= this.#dueMs) {
      this.#startedMs = nowMs
      this.#running = runCommand(this.#command, (end) => this.#takeEnd(end), this.#isHeard)
    }
  }

  /** A shorter lifetime applies to the current key too. A longer lifetime applies only to the next key. */
  override follow(renewal: KeyRenewal): void {
    if (!('command' in renewal) || renewal.lifetimeMs === this.#lifetimeMs) return
    this.#lifetimeMs = renewal.lifetimeMs
    this.#dueMs = Math.min(this.#dueMs, this.#toldMs + this.#lifetimeMs)
  }

  doubt(): void {
    const soonMs = this.#startedMs + retryMs
    if (!this.#running && this.#dueMs > soonMs) this.#dueMs = soonMs
  }

  close(): void {
    this.#running?.stop()
    this.#running = undefined
    this.#dueMs = Number.POSITIVE_INFINITY
    this.#onFirst()
  }

  #takeEnd(end: CommandEnd): void {
    this.#running = undefined
    // The arguments of the command may hold secrets; its name does not.
    const tell = (why: string) => [this.#command[0], why, end.said].filter((part) => part !== undefined).join(': ')
    if ('text' in end && this.takeText(end.text, (mistake) => tell(`what it prints ${mistake}`))) {
      this.#failures = 0
      this.#toldMs = this.clockMs()
      this.#dueMs = this.#toldMs + this.#lifetimeMs
    } else {
      if ('why' in end) this.fail(tell(end.why))
      const waitMs = Math.min(retryMaxMs, retryMs * 2 ** Math.min(this.#failures++, 10))
      this.#dueMs = this.clockMs() + Math.min(waitMs, this.#lifetimeMs)
    }
    this.#onFirst()
  }
}
