import { StoreSilent } from '../../accounts/account.ts'
import type { Introduction, OtherReplica } from '../../accounts/server-store.ts'
import { StoreError } from '../files/store-error.ts'
import { calls } from './admit.ts'
import type { Transaction } from './database.ts'
import { call } from './migrate.ts'
import { beat, leave, livingReplicas, otherReplicas, register, sweep, sweptMax } from './replicas.ts'
import type { Identity } from './shares.ts'
import { codeOf } from './trouble.ts'

type PresenceOptions = {
  database: Transaction
  introduction: Introduction
  /** Writes all figures of this replica to the database: the credit that it holds, and its counts of requests. */
  tell(identity: Identity): Promise<void>
  /** Forgets accounts for which this replica has no holds, no open rate windows and no waiting questions. */
  forgetIdle(): void
  /** Called when the list of living replicas with another configuration has changed. @param others the new list */
  onConfigDiffers(others: readonly string[]): void
  beatMs?: number
  /** How often this replica cleans up and compares the configurations, in ms. */
  sweepMs?: number
}

/**
 * Makes this replica known to the others. Registers the replica, writes its heartbeat every second, and removes it at
 * the end. If the database has lost the replica's holds, they are written again. Also cleans up after dead replicas.
 */
export class Presence {
  readonly #options: PresenceOptions
  #introduction: Introduction
  #identity: Identity | undefined
  #beating: NodeJS.Timeout | undefined
  #sweeping: NodeJS.Timeout | undefined
  #isBeating = false
  #swept = Promise.resolve()
  #isClosed = false
  #differing = ''

  constructor(options: PresenceOptions) {
    this.#options = options
    this.#introduction = options.introduction
  }

  /**
   * Registers this replica and starts its heartbeat.
   * @throws StoreError if a living replica has another seal key; any other error comes from the database
   */
  async start(): Promise<Identity> {
    const identity = await this.#register()
    await this.#options.tell(identity)
    const { beatMs = 1_000, sweepMs = 15_000 } = this.#options
    this.#beating = setInterval(() => void this.beat(), beatMs)
    this.#sweeping = setInterval(() => void this.sweep(), sweepMs)
    void this.sweep()
    return identity
  }

  /** This server's name as people see it. It includes the server's number, because names need not be unique. */
  get shown(): string {
    const { name } = this.#introduction
    return this.#identity === undefined ? name : `${name} (${this.#identity.id})`
  }

  /** Changes the introduction (the facts about this server). The next heartbeat writes it. */
  introduce(change: Partial<Introduction>): void {
    this.#introduction = { ...this.#introduction, ...change }
  }

  /** Lists the other replicas. @throws StoreSilent while the database cannot be read */
  async listOthers(database: Transaction): Promise<OtherReplica[]> {
    try {
      const rows = (await database.query(otherReplicas, [this.#identity?.id ?? 0])) as RegisteredDoor[]
      return rows.map(({ id, name, door }) => ({ name: `${name} (${id})`, door: door ? JSON.parse(door) : undefined }))
    } catch (cause) {
      throw new StoreSilent('the database cannot be read', { cause })
    }
  }

  async beat(): Promise<void> {
    if (this.#isBeating || this.#isClosed || !this.#identity) return
    this.#isBeating = true
    try {
      const { id, startedMs } = this.#identity
      const { configDigest, door = null } = this.#introduction
      const isKnown = await call<boolean>(this.#options.database, beat, [id, startedMs, configDigest, door])
      if (!isKnown) await this.#tellAgain(this.#identity)
    } catch {
      // The loss of the connection is reported elsewhere (control.ts), and the next heartbeat tries again.
    } finally {
      this.#isBeating = false
    }
  }

  /** Cleans up after dead replicas. Calls run one after another. The promise never rejects. */
  sweep(): Promise<void> {
    this.#swept = this.#swept.then(() => this.#sweep())
    return this.#swept
  }

  async #sweep(): Promise<void> {
    const { database, forgetIdle } = this.#options
    if (this.#isClosed || !this.#identity) return
    forgetIdle()
    try {
      for (let gone = sweptMax; gone === sweptMax && !this.#isClosed; )
        gone = await call<number>(database, sweep, [this.#identity.id])
      this.#compare((await database.query(livingReplicas)) as Living[])
    } catch {
      // The failure is not reported here, because the heartbeat reports it.
    }
  }

  /**
   * Ends the presence, so that the credit held by this replica is free again. Takes at most one database call's time.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#beating)
    clearInterval(this.#sweeping)
    if (!this.#identity) return
    const { id, startedMs } = this.#identity
    // If this call fails, the other servers consider this one dead when it has sent no heartbeat for a while.
    await call(this.#options.database, leave, [id, startedMs]).catch(() => {})
  }

  async #register(): Promise<Identity> {
    const { name, version, configDigest, sealFingerprint } = this.#introduction
    const values = [name, version, configDigest, sealFingerprint]
    try {
      const made = await call<string>(this.#options.database, register, values)
      const [id, startedMs] = made.split(',').map(Number)
      this.#identity = { id: id!, startedMs: startedMs! }
      return this.#identity
    } catch (error) {
      if (codeOf(error) !== calls.otherSeal) throw error
      throw new StoreError(
        `the replica ${(error as Error).message} has another seal_key: give all replicas the same one (or, to change it, stop all of them and wait half a minute)`,
        { cause: error },
      )
    }
  }

  /**
   * Writes all figures of this server to the database again. If a standby that had fallen behind was promoted, it may
   * not know the server. Then the server registers as a new one with the same holds.
   */
  async #tellAgain(identity: Identity): Promise<void> {
    try {
      await this.#options.tell(identity)
    } catch (error) {
      if (codeOf(error) !== calls.unknownReplica) throw error
      await this.#options.tell(await this.#register())
    }
  }

  #compare(living: readonly Living[]): void {
    const others = living.filter(
      ({ id, config }) => id !== this.#identity?.id && config !== this.#introduction.configDigest,
    )
    const names = others.map(({ id, name, version }) => `${name} (${id}, ${version})`)
    const differing = names.join()
    if (differing === this.#differing) return
    this.#differing = differing
    this.#options.onConfigDiffers(names)
  }
}

type RegisteredDoor = { id: number; name: string; door: string | null }

type Living = { id: number; name: string; version: string; config: string }
