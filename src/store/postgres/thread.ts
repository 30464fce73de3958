import { Worker } from 'node:worker_threads'
import { StoreSilent } from '../../accounts/account.ts'
import { StoreError } from '../files/store-error.ts'
import type {
  CarriedError,
  FromThread,
  News,
  Orders,
  QuestionName,
  Questions,
  ThreadMessage,
  ToThread,
} from './protocol.ts'

/** The time in which the thread must end. A database that does not answer has limits of its own, and this is longer. */
const closeMs = 4_000

/** The serving thread's end of the store's thread: what was asked, and who waits for the answer. */
export class StoreThread {
  /** Resolves with the cause when it dies; never after `close`. */
  readonly death: Promise<Error>
  readonly #worker: Worker
  readonly #ended: Promise<void>
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0
  #failure: Error | undefined
  #isClosing = false
  #isOver = false

  constructor(workerData: unknown, hear: <Name extends keyof News>(news: Name, value: News[Name]) => void) {
    const [death, ended] = [Promise.withResolvers<Error>(), Promise.withResolvers<void>()]
    this.death = death.promise
    this.#ended = ended.promise
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData, name: 'store' })
    this.#worker.on('message', (messages: FromThread) => {
      for (const said of messages) {
        if ('news' in said) hear(said.news, said.value)
        else this.#answer(said)
      }
    })
    this.#worker.on('error', (error) => {
      this.#failure = error as Error
    })
    this.#worker.on('exit', () => {
      const error = this.#failure ?? new Error('the store thread ended')
      this.#isOver = true
      for (const { reject } of this.#waiting.values()) reject(error)
      this.#waiting.clear()
      if (!this.#isClosing) death.resolve(error)
      ended.resolve()
    })
  }

  /** @throws StoreSilent, StoreError, or the thread's death. */
  ask<Name extends QuestionName>(question: Name, value: Questions[Name]['asks']): Promise<Questions[Name]['answers']> {
    if (this.#isOver) return Promise.reject(new StoreSilent('the store thread has ended'))
    const answer = Promise.withResolvers<unknown>()
    const id = ++this.#lastId
    this.#waiting.set(id, answer)
    this.#send({ id, question, value } as ToThread)
    return answer.promise as Promise<Questions[Name]['answers']>
  }

  order<Name extends keyof Orders>(order: Name, value: Orders[Name]): void {
    this.#send({ order, value } as ToThread)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.ask('close', undefined).catch(() => {})
    const late = setTimeout(() => void this.#worker.terminate(), closeMs)
    await this.#ended
    clearTimeout(late)
  }

  #send(message: ToThread): void {
    this.#worker.postMessage(message)
  }

  #answer(message: Exclude<ThreadMessage, { news: unknown }>): void {
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    if ('error' in message) waiting?.reject(revive(message.error))
    else waiting?.resolve(message.value)
  }
}

function revive({ kind, message }: CarriedError): Error {
  if (kind === 'silent') return new StoreSilent(message)
  return kind === 'refused' ? new StoreError(message) : new Error(message)
}
