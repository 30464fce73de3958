import type { Config } from '../config/config.ts'
import { demoAccount, demoCure, findGift } from './demo.ts'
import type { Log } from './log.ts'

/** How soon a database that did not answer is asked again. */
const retryMs = 1_000

/** Keeps the demo account from real models: its credit was for the simulator (N-F12). */
export class DemoBar {
  /** By id; the gateway follows it. */
  readonly barred = new Set<string>()
  readonly #log: Log
  #last: Config | undefined

  constructor(log: Log) {
    this.#log = log
  }

  /** For the configuration that comes into force. A database that cannot be reached serves nobody meanwhile, and is asked again. */
  async look(config: Config): Promise<void> {
    this.#last = config
    const { isBuiltIn, store } = config
    try {
      const id = isBuiltIn ? undefined : await findGift(store)
      if (this.#last === config) this.#bar(id)
    } catch (error) {
      if (store.engine === 'sqlite') throw error
      setTimeout(() => void (this.#last === config && this.look(config)), retryMs).unref()
    }
  }

  #bar(id: string | undefined): void {
    this.barred.clear()
    if (id === undefined) return
    this.barred.add(id)
    this.#log.event('info', 'demo_refused', { account: demoAccount, cure: demoCure })
  }
}
