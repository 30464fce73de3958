import { resultCode } from '../files/store-error.ts'
import type { FileWatch } from './file-watch.ts'
import type { Store } from './store.ts'

/**
 * The result of work on the store. `busy`: another process has the lock. `lost`: a file of the store is gone, so no
 * further work is tried.
 */
export type RunOutcome = 'done' | 'busy' | 'failed' | 'lost'

/** News about the connection. `trouble`: work failed. `lost`: a file of the store was removed or replaced. */
export type ConnectionNews = { type: 'trouble'; message: string; code: number } | { type: 'lost'; message: string }

type StoreConnectionOptions = {
  /** The store to begin with. It was just opened. */
  store: Store
  reopen: () => Store
  /** The watch of the store's files. It knows which files were there when the store was opened. */
  files: FileWatch
  say: (news: ConnectionNews) => void
}

/** SQLite's result code for a file that another process has locked. */
export const busyCode = 5

/**
 * The server's only connection to its store. After a failure the state on the disk is unknown. So the file is opened
 * again, and the content of its log is made durable before anything is written (B8). If a file of the store is gone,
 * the store is lost for good.
 */
export class Connection {
  readonly #options: StoreConnectionOptions
  #store: Store | undefined
  /** Whether a part of the log may be missing on the disk, because a sync failed in this or an earlier run. */
  #isSuspect = true
  #isLost = false

  constructor(options: StoreConnectionOptions) {
    this.#options = options
    this.#store = options.store
    // If this fails, for example because another process has the lock, the first debit tries again.
    this.#tryMakeDurable()
  }

  /**
   * Writes the log again if it may not be on the disk (B8). The store must be open.
   * @throws what SQLite or the disk reports
   */
  makeDurable(): void {
    if (!this.#isSuspect) return
    this.#store!.makeDurable()
    this.#isSuspect = false
  }

  /** Makes SQLite's log (WAL) durable, then runs work that writes. After a failure, the work can be run again. */
  write(work: (store: Store) => void): RunOutcome {
    return this.#use((store) => {
      this.makeDurable()
      work(store)
    })
  }

  /** Runs work that reads. If a file of the store is lost, the work does not run. */
  read(work: (store: Store) => void): RunOutcome {
    return this.#use((store) => {
      if (!this.#isAnyLost(store)) work(store)
    })
  }

  /** Closes the store, unless it is lost. Closing a lost store would delete the file that now has the log's name. */
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
    // The file that was opened again must be the same file as before.
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

  /** Checks the files after a failure. If the log was cut, SQLite would open what is left as if it were complete. */
  #wasLost(): boolean {
    try {
      return this.#store !== undefined && this.#isAnyLost(this.#store)
    } catch {
      // A connection that cannot be checked is opened again.
      return false
    }
  }

  #tryMakeDurable(): void {
    try {
      this.makeDurable()
    } catch {
      // The log is still suspect, so the next write tries again.
    }
  }

  #closeStore(): void {
    const store = this.#store
    if (!store) return
    // On closing, SQLite may copy the log into the file. This is safe only if the whole log is on the disk.
    this.#tryMakeDurable()
    this.#store = undefined
    try {
      store.close()
    } catch {
      // A failed close does no harm, because a new connection replaces this one.
    }
  }

  #isStoreLost(): boolean {
    const message = this.#options.files.findLostStore()
    if (message === undefined) return false
    this.#lose(message)
    return true
  }

  /** Whether a file of the store is lost. Checked a few times a second and after each failure (ruling X11). */
  #isAnyLost(store: Store): boolean {
    const message = this.#options.files.findLoss(() => store.countFrames())
    if (message === undefined) return false
    this.#saveLog(store)
    this.#lose(message)
    return true
  }

  /**
   * Saves the content of a log (WAL) whose file was deleted. This connection still has the log open, and a checkpoint
   * copies it into the store's file.
   */
  #saveLog(store: Store): void {
    const { files } = this.#options
    try {
      if (files.findLostStore() === undefined && files.isLogWhole(() => store.countFrames())) store.checkpoint()
    } catch {
      // The checkpoint failed, so only the content that is already in the store's file remains.
    }
  }

  #lose(message: string): void {
    this.#isLost = true
    this.#options.say({ type: 'lost', message })
  }
}
