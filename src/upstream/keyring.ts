import { readFile, stat } from 'node:fs/promises'
import type { KeyRenewal, Secret, Upstream, UpstreamAccount } from '../config/config.ts'
import { keyMistake } from '../config/values.ts'
import { type CommandEnd, runCommand } from './key-command.ts'

/** How often a file is looked at, in ms. */
const lookEveryMs = 1_000

/** How long a command may take; how soon one that failed, or whose key was refused, is run again; in ms. */
const commandMaxMs = 30_000
const retryMs = 5_000
const retryMaxMs = 60_000

/** So many that nothing names any more are remembered: more than reloads take away while a request runs. */
const retiredMax = 1_000

/** A key as it is now. */
export interface LiveKey {
  /** Undefined while nothing has told it: its account is asked for nothing. */
  readonly value: string | undefined
  /** Counts its changes. */
  readonly version: number
  /** It and the one before it, which answers under way may still speak of. */
  readonly known: readonly string[]
  /** The provider refused it: whatever it comes from is asked before its time. */
  doubt(): void
}

export type KeyFinder = (account: UpstreamAccount) => LiveKey

/** Tells the log. No key is ever in it, nor what a command printed. */
export type KeyReport = (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void

/** The keys that change while the process runs; they outlive the configuration, so that a reload starts no command again. */
export type Keyring = {
  /** As it is known: who asks for it begins nothing. */
  keyOf: KeyFinder
  /** These come into force: what they name is watched, and nothing else any more. */
  adopt(upstreams: Iterable<Upstream>): void
  /** These stay in force, with the keys as they are now: what was begun for others ends. */
  keep(upstreams: Iterable<Upstream>): void
  /** Begins with what these need. @returns when each command among them has come to an end, well or not */
  prepare(upstreams: Iterable<Upstream>): Promise<void>
  /** Looks what is due. */
  tick(): void
  /** Ends every command. */
  close(): void
}

/** @param clockMs monotonic */
export function createKeyring(clockMs: () => number, report: KeyReport): Keyring {
  const renewed = new Map<string, RenewedKey>()
  /** Of configurations before, for requests that were begun with them: nothing renews them any more. */
  const retired = new Map<string, RenewedKey>()
  return {
    keyOf(account) {
      const id = idOf(account)
      const key = id === undefined ? undefined : (renewed.get(id) ?? retired.get(id))
      return key ?? fixedKey(account)
    },
    adopt: (upstreams) => retireOthers(readAll(upstreams)),
    keep: (upstreams) => retireOthers(findAll(upstreams).map(({ key }) => key)),
    async prepare(upstreams) {
      const found = readAll(upstreams)
      for (const key of found) key.tick()
      await Promise.all(found.map((key) => key.first))
    },
    tick() {
      for (const key of renewed.values()) key.tick()
    },
    close() {
      for (const key of renewed.values()) key.close()
    },
  }

  /** What the newest configuration names, with what it has read of it. */
  function readAll(upstreams: Iterable<Upstream>): RenewedKey[] {
    return findAll(upstreams).map(({ key, account }) => {
      key.take(account.key)
      return key
    })
  }

  function findAll(upstreams: Iterable<Upstream>): { key: RenewedKey; account: UpstreamAccount }[] {
    return [...upstreams].flatMap(({ name, accounts }) =>
      accounts.flatMap((account) => {
        const key = find(account, `${name}/${account.name}`)
        return key ? { key, account } : []
      }),
    )
  }

  function retireOthers(named: readonly RenewedKey[]): void {
    const kept = new Set(named)
    for (const [id, key] of renewed) {
      if (kept.has(key)) continue
      renewed.delete(id)
      key.close()
      retired.set(id, key)
      if (retired.size > retiredMax) retired.delete(retired.keys().next().value!)
    }
  }

  /** @param label what the log calls it by */
  function find(account: UpstreamAccount, label: string): RenewedKey | undefined {
    const id = idOf(account)
    if (id === undefined) return undefined
    const key = renewed.get(id) ?? openKey(account.renewal!, { clockMs, report, label })
    key.follow(account.renewal!)
    renewed.set(id, key)
    retired.delete(id)
    return key
  }
}

/** What its key comes from; undefined where that does not change, or is not asked. */
function idOf({ renewal, isEnabled }: UpstreamAccount): string | undefined {
  return renewal && isEnabled ? sourceOf(renewal) : undefined
}

/** Where a key comes from, and not how long it lives. */
export function sourceOf(renewal: KeyRenewal): string {
  return JSON.stringify('file' in renewal ? { file: renewal.file } : { command: renewal.command })
}

/** The key that stands in the configuration. One that is renewed, of an account that is off, is not known. */
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

function openKey(renewal: KeyRenewal, surroundings: Surroundings): RenewedKey {
  return 'file' in renewal ? new FileKey(renewal.file, surroundings) : new CommandKey(renewal, surroundings)
}

/** What the two kinds have in common. Fields are private, so that nothing that is printed by accident shows a key. */
abstract class RenewedKey implements LiveKey {
  /** Resolves when the key may be asked for: one from a file at once, since it is read when it is asked for. */
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

  /** What else the newest configuration says of it. */
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

  /** What the configuration has read; nothing where it has not. */
  take(key: Secret): void {
    const value = key.reveal()
    if (value) this.#set(value)
  }

  /** @returns whether it is a key */
  protected takeText(text: string): boolean {
    const value = text.trim()
    const mistake = keyMistake(value)
    if (mistake) {
      this.fail(mistake)
      return false
    }
    this.#trouble = undefined
    this.#set(value)
    return true
  }

  /** The key that it was goes on. Said once for as long as nothing else is the matter. */
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

/** A file that is looked at every second; only one that has changed is read. */
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
    // It may have read the file before the last look did.
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
    // What is written while it is read has other times, and is read again.
    this.takeText(await readFile(this.#path, 'utf8'))
    this.#seen = seen
  }
}

/** A command that is run when its key's time is over. Until it has told another the key goes on. */
class CommandKey extends RenewedKey {
  readonly first: Promise<void>
  readonly #command: readonly string[]
  #lifetimeMs: number
  /** When it told its key. */
  #toldMs = Number.NEGATIVE_INFINITY
  #dueMs = Number.NEGATIVE_INFINITY
  #startedMs = Number.NEGATIVE_INFINITY
  #failures = 0
  #running: { stop(): void } | undefined
  #onFirst = () => {}

  constructor({ command, lifetimeMs }: { command: readonly string[]; lifetimeMs: number }, around: Surroundings) {
    super(around)
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
      this.#running = runCommand(this.#command, (end) => this.#takeEnd(end))
    }
  }

  /** A shorter life counts from when the key was told; a longer one is the next key's. */
  override follow(renewal: KeyRenewal): void {
    if ('file' in renewal || renewal.lifetimeMs === this.#lifetimeMs) return
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
    if ('text' in end && this.takeText(end.text)) {
      this.#failures = 0
      this.#toldMs = this.clockMs()
      this.#dueMs = this.#toldMs + this.#lifetimeMs
    } else {
      if ('why' in end) this.fail(end.why)
      const waitMs = Math.min(retryMaxMs, retryMs * 2 ** Math.min(this.#failures++, 10))
      this.#dueMs = this.clockMs() + Math.min(waitMs, this.#lifetimeMs)
    }
    this.#onFirst()
  }
}
