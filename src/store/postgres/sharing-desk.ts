import type { DeskOrder } from '../../accounts/desk.ts'
import type { Cooldown, Introduction } from '../../accounts/server-store.ts'
import type { Orders, Say } from '../serving/thread.ts'
import { AdmissionDesk } from './admission-desk.ts'
import { admit, tell } from './admit.ts'
import type { Desk } from './control.ts'
import { CooldownBoard } from './cooldown-board.ts'
import { type Database, type DatabaseSession, openDatabase, type Transaction } from './database.ts'
import type { SqlFunction } from './migrate.ts'
import { Presence } from './presence.ts'
import { beat, leave, register, sweep } from './replicas.ts'
import { cool, cooldownsChannel, countFailures, enable, lift, readFailures } from './shared-limits.ts'
import { Steering } from './steering.ts'

type SharingOptions = {
  url: string
  /** The longest wait for a statement, in ms. */
  patienceMs: number
  introduction: Introduction
  clockMs: () => number
  say: Say
}

/**
 * The state that replicas share besides the ledger: living replicas, admission, failed authentications, and cooldowns.
 */
export class SharingDesk implements Desk {
  readonly answers = {
    countFailures: (failures: Parameters<typeof readFailures>[1]) => readFailures(this.#aside, failures),
    otherReplicas: () => this.#presence.listOthers(this.#aside),
  }
  readonly orders = {
    admission: (orders: readonly DeskOrder[]) => this.#admission.take(orders),
    cool: (cooldown: Cooldown) => void this.#board.cool(cooldown).catch(() => {}),
    lift: (place: string) => void this.#board.lift(place).catch(() => {}),
    steer: ({ steering, place }: Orders['steer']) => this.#steering.take(steering, place),
    introduce: (change: Partial<Introduction>) => this.#presence.introduce(change),
  }
  readonly channels = { [cooldownsChannel]: () => void this.#board.look().catch(() => {}) }
  readonly #lanes: Database
  readonly #aside: Database
  readonly #admission: AdmissionDesk
  readonly #presence: Presence
  readonly #board: CooldownBoard
  readonly #steering: Steering
  #session: DatabaseSession | undefined
  #isPresent = false

  constructor({ url, patienceMs, introduction, clockMs, say }: SharingOptions) {
    // If a crash loses the last rows of these connections, it does no harm. So commits do not wait for the disk.
    const settings = { synchronous_commit: 'off' }
    this.#lanes = openDatabase({ url, max: 2, patienceMs, purpose: 'admission', settings, idleMs: 0 })
    this.#aside = openDatabase({ url, max: 1, patienceMs, purpose: 'limits', settings })
    this.#admission = new AdmissionDesk({
      database: this.#lanes,
      clockMs,
      patienceMs,
      answer: (answers) => say('admission', answers),
      onTrouble: ({ message }, code) =>
        say('log', { level: 'error', event: 'admission_trouble', fields: { error: message, code } }),
    })
    this.#presence = new Presence({
      database: this.#control(),
      introduction,
      tell: (identity) => this.#admission.tell(identity),
      forgetIdle: () => this.#admission.forgetIdle(),
      onConfigDiffers: (others) =>
        say('log', {
          level: others.length > 0 ? 'error' : 'info',
          event: 'config_differs',
          fields: { replicas: others },
        }),
    })
    this.#board = new CooldownBoard(this.#aside, () => this.#presence.shown, {
      cooled: (cooldown) => say('cooled', cooldown),
      lifted: (lifted) => say('lifted', lifted),
    })
    this.#steering = new Steering(this.#board, clockMs)
  }

  async onReached(session: DatabaseSession): Promise<void> {
    this.#session = session
    if (this.#isPresent) await this.#presence.beat()
    else await this.#presence.start()
    this.#isPresent = true
    await this.#steering.write()
    await this.#board.look()
  }

  /** Starts to write the operators' commands, and does not wait. A slow write must not count as a lost connection. */
  async onBeat(): Promise<void> {
    void this.#steering.write()
  }

  onAnswered(): void {
    this.#admission.noteAnswered()
  }

  onLost(): void {
    this.#session = undefined
  }

  async close(): Promise<void> {
    this.#admission.close()
    await this.#presence.close()
    await Promise.all([this.#lanes.close(), this.#aside.close()])
  }

  /** Runs statements on the connection that `onReached` got. They fail while there is no such connection. */
  #control(): Transaction {
    return {
      query: async (...asked) => {
        if (!this.#session) throw new Error('the database cannot be reached')
        return this.#session.query(...asked)
      },
    }
  }
}

/** The database's functions for admission, presence, throttle and cooldowns, which replicas share with each other. */
export const sharingFunctions: readonly SqlFunction[] = [
  admit,
  tell,
  register,
  beat,
  leave,
  sweep,
  countFailures,
  cool,
  lift,
  enable,
]
