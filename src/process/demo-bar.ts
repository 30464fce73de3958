import type { Config, StorePlace } from '../config/config.ts'
import type { Log } from '../log/log.ts'
import { demoAccount, demoCure, findGift } from './demo.ts'

/** How soon a database that did not answer is asked again. */
const retryMs = 1_000

/** Keeps the demo account from real models: its credit was for the simulator (N-F12). */
export class DemoBar {
  /** By id; the gateway follows it. */
  readonly barred = new Set<string>()
  readonly #log: Log
  readonly #store: StorePlace
  #inForce: Config | undefined

  /** @param store the one in use: what a later configuration names needs a restart */
  constructor(log: Log, store: StorePlace) {
    this.#log = log
    this.#store = store
  }

  /**
   * Looks whom a configuration bars. A database that cannot be reached serves nobody meanwhile, and is asked again.
   * @returns what puts it in force. @throws StoreError
   */
  async look(config: Config): Promise<() => void> {
    try {
      const id = config.isBuiltIn ? undefined : await findGift(this.#store)
      return () => {
        this.#inForce = config
        this.#bar(id)
      }
    } catch (error) {
      if (this.#store.engine === 'sqlite') throw error
      return () => {
        this.#inForce = config
        setTimeout(() => void this.#lookAgain(config), retryMs).unref()
      }
    }
  }

  async #lookAgain(config: Config): Promise<void> {
    if (this.#inForce !== config) return
    const bar = await this.look(config)
    if (this.#inForce === config) bar()
  }

  #bar(id: string | undefined): void {
    this.barred.clear()
    if (id === undefined) return
    this.barred.add(id)
    this.#log.event('info', 'demo_refused', { account: demoAccount, cure: demoCure })
  }
}
