import { StoreSilent } from '../../accounts/account.ts'
import type { News, Orders, QuestionName, Questions } from './protocol.ts'
import { StoreThread, type ThreadStart } from './thread.ts'

/** A program that asks for reports alone hears of nothing. */
const unheardMax = 10_000

type LineNews = { news: keyof News; value: unknown }

/** From the serving thread to the store's thread of the day: one that died has a successor. */
export class Line {
  #thread: StoreThread | undefined
  readonly #hearers = new Map<keyof News, (value: never) => void>()
  /** News that nobody has heard yet, in order: the thread sends each as soon as it can, and only once. */
  #unheard: LineNews[] = []
  #isReplaying = false

  /** Listens to one kind of news of that thread, from its beginning. */
  hear<Name extends keyof News>(news: Name, hear: (value: News[Name]) => void): void {
    this.#hearers.set(news, hear)
    if (this.#isReplaying) return
    this.#isReplaying = true
    // The replay follows all listeners that are added now, since one kind of news may take another back.
    queueMicrotask(() => this.#replay())
  }

  #replay(): void {
    this.#isReplaying = false
    const told = this.#unheard
    this.#unheard = told.filter(({ news }) => !this.#hearers.has(news))
    for (const { news, value } of told) this.#hearers.get(news)?.(value as never)
  }

  /** Starts a thread that is used from now on. */
  start(options: ThreadStart): StoreThread {
    this.#thread = new StoreThread(options, (news, value) => this.#tell(news, value))
    return this.#thread
  }

  #tell(news: keyof News, value: unknown): void {
    const hear = this.#hearers.get(news)
    if (hear && !this.#isReplaying) hear(value as never)
    else this.#unheard.push({ news, value })
    if (this.#unheard.length > unheardMax) this.#unheard.shift()
  }

  /** @throws StoreSilent where there is no answer to be had, StoreError where the store refuses. */
  ask<Name extends QuestionName>(question: Name, value: Questions[Name]['asks']): Promise<Questions[Name]['answers']> {
    return this.#thread?.ask(question, value) ?? Promise.reject(new StoreSilent('the store is not open'))
  }

  order<Name extends keyof Orders>(order: Name, value: Orders[Name]): void {
    this.#thread?.order(order, value)
  }
}
