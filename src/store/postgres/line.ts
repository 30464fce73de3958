import { StoreSilent } from '../../accounts/account.ts'
import type { News, Orders, QuestionName, Questions } from './protocol.ts'
import { StoreThread } from './thread.ts'
import type { ThreadOptions } from './thread-options.ts'

/** From the serving thread to the store's thread of the day: one that died has a successor. */
export class Line {
  #thread: StoreThread | undefined
  readonly #hearers = new Map<keyof News, (value: never) => void>()

  /** Who hears of what that thread says without being asked. */
  hear<Name extends keyof News>(news: Name, hear: (value: News[Name]) => void): void {
    this.#hearers.set(news, hear)
  }

  /** Starts a thread that is used from now on. */
  start(options: ThreadOptions): StoreThread {
    this.#thread = new StoreThread(options, (news, value) => this.#hearers.get(news)?.(value as never))
    return this.#thread
  }

  /** @throws StoreSilent where there is no answer to be had, StoreError where the store refuses. */
  ask<Name extends QuestionName>(question: Name, value: Questions[Name]['asks']): Promise<Questions[Name]['answers']> {
    return this.#thread?.ask(question, value) ?? Promise.reject(new StoreSilent('the store is not open'))
  }

  order<Name extends keyof Orders>(order: Name, value: Orders[Name]): void {
    this.#thread?.order(order, value)
  }
}
