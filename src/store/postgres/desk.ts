import { StoreSilent } from '../../accounts/account.ts'
import { StoreError } from '../files/store-error.ts'
import type { DatabaseSession, Transaction } from './database.ts'
import type { CarriedError, News, Orders, QuestionName, Questions } from './protocol.ts'

export type Answers = {
  [Name in QuestionName]: (asks: Questions[Name]['asks']) => Promise<Questions[Name]['answers']>
}

export type Heeded = { [Name in keyof Orders]: (value: Orders[Name]) => void }

export type Say = <Name extends keyof News>(news: Name, value: News[Name]) => void

/** A part of the store's thread, with what it answers for. What it does not concern it leaves out. */
export type Desk = {
  answers?: Partial<Answers>
  orders?: Partial<Heeded>
  /** By their names: channels it listens to. */
  channels?: Readonly<Record<string, (payload: string) => void>>
  /**
   * The database can be reached, at first or again, and its notices are heard already. Before this resolves, the store does
   * not count as reached. An error is reported, and the connection is made anew.
   */
  onReached?(session: DatabaseSession): Promise<void>
  /** Every second while it can be reached, on the same connection. What it throws counts as its loss. */
  onBeat?(session: Transaction): Promise<void>
  /** The database has answered a beat. */
  onAnswered?(): void
  /** The database cannot be reached any more. */
  onLost?(): void
  /** Ends it, in a time that the database cannot make longer. */
  close?(): Promise<void>
}

/** Of an error that goes to the serving thread. */
export function carry(error: unknown): CarriedError {
  const { message } = error as Error
  if (error instanceof StoreSilent) return { message, kind: 'silent' }
  return { message, kind: error instanceof StoreError ? 'refused' : 'other' }
}
