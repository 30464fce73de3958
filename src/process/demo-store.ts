import { existsSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Books } from '../accounts/books.ts'
import type { Config } from '../config/config.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { type DemoFile, openDemoDesk, viewDemo } from '../live/demo-view.ts'
import { NeedWatch } from '../live/needs.ts'
import { type OpenBooks, openServingBooks } from '../store/open-books.ts'

type DemoStoreParts = {
  config: Pick<Config, 'store' | 'stateDir' | 'reporting'>
  /** Whether this process is one of several workers that share a folder. */
  isWorker: boolean
  /** Returns the books (accounts, keys and ledger) of the real store, which the demo only reads. */
  books(): Promise<Books>
  nowMs(): number
}

/** Opens the demo of a server. `desk` makes and removes the demo, and `viewOf` lets the console read it. */
export function openDemo({
  gateway,
  reportBug,
  ...parts
}: Omit<DemoStoreParts, 'nowMs'> & { gateway: Gateway; reportBug(bug: Error): void }) {
  const { nowMs } = gateway
  const file = new DemoStore({ ...parts, nowMs })
  const desk = openDemoDesk(file)
  const needs = new NeedWatch({
    ...{ gateway, reportBug, books: desk.books, listWebhooks: () => [], tellClock: () => null, isTelling: false },
  })
  return {
    desk,
    viewOf: (own: Parameters<typeof viewDemo>[0]) =>
      viewDemo(own, { books: desk.books, listNeeds: () => needs.list(), nowMs }),
    async close(): Promise<void> {
      await needs.close()
      await file.close()
    },
  }
}

/**
 * The endings of a store's file names. The main file has the empty ending, and the files beside it have the other
 * endings.
 */
const endings = ['', '-wal', '-shm', '.lock']

/**
 * The demo of the console: a separate store with invented requests, in a file in the server's state folder. It is
 * offered until the real store has billed a request. Leaving the demo removes the file.
 */
class DemoStore implements DemoFile {
  readonly #parts: DemoStoreParts
  readonly #path: string
  #opened: Promise<OpenBooks> | undefined
  #making: Promise<boolean> | undefined
  /** Whether this process has checked that the file is a demo. */
  #isKnown = false

  constructor(parts: DemoStoreParts) {
    this.#parts = parts
    const { store, stateDir } = parts.config
    const folder = parts.isWorker ? dirname(stateDir) : stateDir
    const path = join(folder, 'demo.db')
    this.#path = store.engine === 'sqlite' && store.path === path ? join(folder, 'demo-life.db') : path
  }

  async state() {
    const isMade = await this.#isOurs()
    const isFree = isMade || !existsSync(this.#path)
    const models = isFree ? await (await this.#parts.books()).listModels() : []
    return { offered: isFree && models.length === 0, made: isMade, making: this.#making !== undefined }
  }

  make(): Promise<boolean> {
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined
    })
    return this.#making
  }

  async remove(): Promise<void> {
    await this.#making?.catch(() => {})
    if (!(await this.#isOurs())) return
    await this.close()
    for (const ending of endings) rmSync(this.#path + ending, { force: true })
  }

  async books(): Promise<Books | undefined> {
    return (await this.#isOurs()) ? this.#openBooks() : undefined
  }

  async #openBooks(): Promise<Books> {
    const { nowMs, config } = this.#parts
    const place = { engine: 'sqlite', path: this.#path, shown: this.#path } as const
    this.#opened ??= openServingBooks(place, nowMs, config.reporting)
    return (await this.#opened).books
  }

  async close(): Promise<void> {
    const opened = this.#opened
    this.#opened = undefined
    await (await opened)?.close()
  }

  async #make(): Promise<boolean> {
    const { offered, made } = await this.state()
    if (made || !offered) return made
    // The demo is written under another name first, so that a file with the right name is always complete.
    const path = `${this.#path}.new`
    const removeParts = () => {
      for (const ending of endings) rmSync(path + ending, { force: true })
    }
    removeParts()
    try {
      const { makeDemoLife } = await import('../store/demo-life.ts')
      await makeDemoLife(path, { nowMs: this.#parts.nowMs(), reporting: this.#parts.config.reporting })
      renameSync(path, this.#path)
      return true
    } finally {
      removeParts()
    }
  }

  /** Whether the file is a demo. Another file with this name is neither shown, changed nor removed. */
  async #isOurs(): Promise<boolean> {
    if (!existsSync(this.#path)) {
      // Another worker may have removed the file.
      this.#isKnown = false
      await this.close()
      return false
    }
    if (this.#isKnown) return true
    try {
      const { isDemoLife } = await import('../store/demo-life.ts')
      this.#isKnown = isDemoLife(this.#path)
    } catch {
      // The file is not a store.
    }
    return this.#isKnown
  }
}
