import type { FoundDebit } from '../../accounts/entries.ts'
import type { DebitRow, GivenBack, Posted, Withdrawn } from '../../accounts/poster.ts'

/* What the serving thread and the store's thread say to each other. */

/** Each is answered once, in whatever order. */
export type Questions = {
  /** The store is open, or will be when the database can be reached. */
  open: { asks: undefined; answers: undefined }
  post: { asks: readonly DebitRow[]; answers: Posted }
  withdraw: { asks: readonly DebitRow[]; answers: Withdrawn }
  giveBack: { asks: readonly string[]; answers: GivenBack }
  findDebit: { asks: string; answers: FoundDebit | undefined }
  close: { asks: undefined; answers: undefined }
}

export type QuestionName = keyof Questions

/** What wants no answer, from the serving thread. */
export type Orders = {
  uses: readonly (readonly [keyId: string, usedMs: number])[]
}

/** What the store's thread says without being asked. */
export type News = {
  trouble: { message: string; code: string }
}

/** An error as it travels: classes do not, and who asked must know the two that mean something to him. */
export type CarriedError = { message: string; kind: 'silent' | 'refused' | 'other' }

export type ToThread =
  | { [Name in QuestionName]: { id: number; question: Name; value: Questions[Name]['asks'] } }[QuestionName]
  | { [Name in keyof Orders]: { order: Name; value: Orders[Name] } }[keyof Orders]

export type FromThread =
  | { id: number; value: unknown }
  | { id: number; error: CarriedError }
  | { [Name in keyof News]: { news: Name; value: News[Name] } }[keyof News]
