import { BookError } from '../accounts/book-error.ts'
import type { Books } from '../accounts/books.ts'
import { neverMs } from '../accounts/budget.ts'
import { parseCredits } from '../accounts/credit.ts'
import { findPlanless, sayPlanless } from '../accounts/planless.ts'
import { nobody } from '../accounts/trail.ts'
import type { Config, StorePlace } from '../config/config.ts'
import type { Log } from '../log/log.ts'
import { openBooks } from '../store/open-books.ts'

const demoAccount = 'demo'
const demoCredit = '10'

/**
 * The demo account, with its new key. A start with the built-in catalog makes the account if the store has no account.
 */
export type Demo = {
  key: string | undefined
  /** The name of the demo account. If the store has only other accounts, it is the name of the first one. */
  account: string
}

/** The text for operators who want to use the demo account with real models. */
export const demoCure = `The account "${demoAccount}" is refused here: its ${demoCredit} credits were for the simulator. To let it pay for real models: triwire account credit ${demoAccount} 5 --reference …, then triwire reload.`

/**
 * Finds the demo account if it has got no credit besides the gift of the first start. The gift must not pay for real
 * models (N-F12). An account that an operator made is no demo account.
 * @returns its id, or undefined @throws StoreError
 */
export async function findGift(books: Books): Promise<string | undefined> {
  try {
    const { id, balanceNanos } = await books.findAccount(demoAccount)
    const { spentNanos } = await books.sumSpend({ accountId: id, scope: id, fromMs: 0, untilMs: neverMs })
    if (balanceNanos + spentNanos !== parseCredits(demoCredit)) return undefined
    // The first release had no audit trail.
    const [made = nobody] = await books.listAudit({ operation: 'account.create', object: id, limit: 1 })
    return made.actor === nobody.actor ? id : undefined
  } catch (error) {
    if (error instanceof BookError) return undefined
    throw error
  }
}

/** Makes the demo account if the store has no account, which is so at the first start. @throws StoreError */
export async function createDemo(store: StorePlace): Promise<Demo> {
  const { books, close } = await openBooks(store)
  try {
    const accounts = await books.listAccounts()
    if (accounts[0]) {
      const { name } = accounts.find(({ name }) => name === demoAccount) ?? accounts[0]
      return { key: undefined, account: name }
    }
    await books.createAccount(demoAccount, parseCredits(demoCredit))
    const { key } = await books.createKey(demoAccount)
    return { key, account: demoAccount }
  } finally {
    await close()
  }
}

/** Returns the text for a start that failed after the key was made. The key cannot be shown later. */
export function sayMade({ key, account }: Demo): string | undefined {
  return key && `The account "${account}" was made nevertheless. Its key is shown this once: ${key}`
}

/** Returns what a start prints to stdout: the new key, and a command for each wire that works when it is pasted. */
export function sayDemo({ key, account }: Demo, base: string): string {
  const models = 'the built-in simulator answers for sim-messages, sim-chat, sim-responses and more (GET /v1/models).'
  if (key === undefined) {
    const program = programName()
    return [
      `No configuration names a model: ${models}`,
      `Make a key: ${program} key create ${account}   (accounts: ${program} account list)`,
    ].join('\n')
  }
  const question = [{ role: 'user', content: 'Hello!' }]
  return [
    `No configuration names a model: ${models}`,
    `A demo account with ${demoCredit} credits was made. Its key is shown this once:`,
    '',
    `  ${key}`,
    '',
    'Try it, one call on each wire:',
    '',
    curl(`${base}/v1/messages`, key, { model: 'sim-messages', max_tokens: 200, messages: question }),
    curl(`${base}/v1/chat/completions`, key, { model: 'sim-chat', messages: question }),
    curl(`${base}/v1/responses`, key, { model: 'sim-responses', input: 'Hello!' }),
  ].join('\n')
}

/** Returns the command that starts this program. npm sets a variable for the programs that it runs. */
function programName(): string {
  return process.env['npm_command'] === undefined ? 'triwire' : 'npx triwire'
}

function curl(url: string, key: string, body: object): string {
  return `curl -s ${url} -H 'authorization: Bearer ${key}' -H 'content-type: application/json' -d '${JSON.stringify(body)}'`
}

/** The time after which a database that did not answer is asked again, in ms. */
const retryMs = 1_000

/**
 * Refuses the demo account for real models, because its credit was for the simulator (N-F12). While it reads the books,
 * it also looks for accounts with a plan that the configuration lacks, and warns of them.
 */
export class DemoBar {
  /** The ids of the accounts that are refused. The gateway reads this set. */
  readonly barred = new Set<string>()
  readonly #log: Log
  readonly #store: StorePlace
  #inForce: Config | undefined

  /** @param store the store in use. A configuration that names another store needs a restart. */
  constructor(log: Log, store: StorePlace) {
    this.#log = log
    this.#store = store
  }

  /**
   * Finds the demo account if this configuration has real models, because the account must not use them. If the
   * database cannot be reached, no request is served anyway, and the database is asked again later.
   * @returns a function that applies the result @throws StoreError
   */
  async look(config: Config): Promise<() => void> {
    try {
      const { gift, planless } = await this.#readBooks(config)
      return () => {
        this.#inForce = config
        this.#bar(gift)
        if (planless.length > 0) this.#log.event('error', 'plan_missing', sayPlanless(planless))
      }
    } catch (error) {
      if (this.#store.engine === 'sqlite') throw error
      return () => {
        this.#inForce = config
        setTimeout(() => void this.#lookAgain(config), retryMs).unref()
      }
    }
  }

  async #readBooks({ isBuiltIn, plans }: Config) {
    const { books, close } = await openBooks(this.#store)
    try {
      const gift = isBuiltIn ? undefined : await findGift(books)
      return { gift, planless: await findPlanless(books, plans) }
    } finally {
      await close()
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
