import { resultCode } from '../files/store-error.ts'
import type { FileWatch } from './file-watch.ts'
import type { Store } from './store.ts'

/** `busy`: another process has the lock. `lost`: a file of the store is gone, and nothing is tried any more. */
export type RunOutcome = 'done' | 'busy' | 'failed' | 'lost'

/** `lost`: a file of the store is gone, or another one stands in its place. */
export type ConnectionNews = { type: 'trouble'; message: string; code: number } | { type: 'lost'; message: string }

type StoreConnectionOptions = {
  /** The first, just opened. */
  store: Store
  reopen: () => Store
  /** Noted since the store was opened. */
  files: FileWatch
  say: (news: ConnectionNews) => void
}

/** SQLite's result code of a file that another process has locked. */
export const busyCode = 5

/**
 * The server's one connection to its store. After a failure the state on the disk is unknown. The file is opened anew, and
 * the content of its log is made durable before anything is written (B8). If a file of the store is gone, it is lost for
 * good.
 */
export class Connection {
  readonly #options: StoreConnectionOptions
  #store: Store | undefined
  /** A sync has failed, or an earlier run may have seen one fail: content of the log need not be on the disk. */
  #isSuspect = true
  #isLost = false

  constructor(options: StoreConnectionOptions) {
    this.#options = options
    this.#store = options.store
    // The first debit meets the same obstacle again, perhaps another process with the lock.
    this.#tryMakeDurable()
  }

  /** Writes what is in the log once more where that is in doubt (B8). It must be open. @throws where it cannot be written. */
  makeDurable(): void {
    if (!this.#isSuspect) return
    this.#store!.makeDurable()
    this.#isSuspect = false
  }

  /** Writes upon a log that is durable. A failure is returned as trouble; the work may be done anew. */
  write(work: (store: Store) => void): RunOutcome {
    return this.#use((store) => {
      this.makeDurable()
      work(store)
    })
  }

  /** Reads, after a look at all files. */
  read(work: (store: Store) => void): RunOutcome {
    return this.#use((store) => {
      if (!this.#isAnyLost(store)) work(store)
    })
  }

  /** In closing SQLite clears the log away, by its name: where the name is another's by now, it is left alone. */
  close(): void {
    if (!this.#isLost) this.#closeStore()
  }

  #use(work: (store: Store) => void): RunOutcome {
    try {
      const store = this.#reach()
      if (store) work(store)
      return this.#isLost ? 'lost' : 'done'
    } catch (error) {
      return this.#recover(error as Error)
    }
  }

  #reach(): Store | undefined {
    if (this.#isLost || this.#isStoreLost()) return undefined
    if (this.#store) return this.#store
    this.#store = this.#options.reopen()
    this.#options.files.note()
    // The opened file must still be the one that stood there before.
    return this.#isStoreLost() ? undefined : this.#store
  }

  #recover(error: Error): RunOutcome {
    const code = resultCode(error) || resultCode(error.cause)
    this.#options.say({ type: 'trouble', message: error.message, code })
    if (code === busyCode) return 'busy'
    if (this.#wasLost()) return 'lost'
    this.#isSuspect = true
    this.#closeStore()
    return 'failed'
  }

  /** To open a log anew that somebody has cut would be to take what is left of it for the whole. */
  #wasLost(): boolean {
    try {
      return this.#store !== undefined && this.#isAnyLost(this.#store)
    } catch {
      // A connection that cannot be looked at is opened anew.
      return false
    }
  }

  #tryMakeDurable(): void {
    try {
      this.makeDurable()
    } catch {
      // The log stays suspect.
    }
  }

  #closeStore(): void {
    const store = this.#store
    if (!store) return
    // In closing SQLite may bring the log into the file, which is right only after the log is whole on the disk.
    this.#tryMakeDurable()
    this.#store = undefined
    try {
      store.close()
    } catch {
      // A new connection replaces this one either way.
    }
  }

  #isStoreLost(): boolean {
    const message = this.#options.files.findLostStore()
    if (message === undefined) return false
    this.#lose(message)
    return true
  }

  /** All files, a few times a second and whenever something fails (ruling X11). */
  #isAnyLost(store: Store): boolean {
    const message = this.#options.files.findLoss(() => store.countFrames())
    if (message === undefined) return false
    this.#saveLog(store)
    this.#lose(message)
    return true
  }

  /** The connection still has a log that lost only its name; what it brings into the file survives the process. */
  #saveLog(store: Store): void {
    const { files } = this.#options
    try {
      if (files.findLostStore() === undefined && files.isLogWhole(() => store.countFrames())) store.checkpoint()
    } catch {
      // The content of the disk is all that remains.
    }
  }

  #lose(message: string): void {
    this.#isLost = true
    this.#options.say({ type: 'lost', message })
  }
}
