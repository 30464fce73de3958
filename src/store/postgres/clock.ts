import { setTimeout as sleep } from 'node:timers/promises'
import { ClockWatch } from '../../accounts/clock.ts'
import type { Say } from '../serving/protocol.ts'
import { readClock, readNowMs } from '../sql/clock.ts'
import type { Transaction } from './database.ts'
import type { Desk } from './desk.ts'
import { dialect, run } from './run.ts'

/** How long a server that has just reached the database waits between two looks at a clock in doubt, in ms. */
const lookMs = 1_000

/**
 * Compares the clock of the database with this machine's steady clock (ruling Y15). While it is in doubt, `post` refuses.
 * A database that was just reached is not used then: the desks after this one do not hear of it.
 */
export class ClockDesk implements Desk {
  readonly watch: ClockWatch
  readonly #say: Say

  constructor(say: Say, ...watched: ConstructorParameters<typeof ClockWatch>) {
    this.watch = new ClockWatch(...watched)
    this.#say = say
  }

  async onReached(session: Transaction): Promise<void> {
    for (await this.onBeat(session); !this.watch.isBelieved; await this.onBeat(session)) await sleep(lookMs)
  }

  async onBeat(session: Transaction): Promise<void> {
    if (!this.watch.isDue(await run(session, readNowMs(dialect)))) return
    const askedMs = Date.now()
    const facts = await run(session, readClock(dialect))
    // The store read its clock between the question and its answer.
    const aheadMs = Math.max(0, askedMs - facts.nowMs) + Math.min(0, Date.now() - facts.nowMs)
    this.#say('clock', { ...this.watch.judge(facts), aheadMs })
  }
}
