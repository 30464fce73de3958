import type { ThreadPart } from '../serving/thread.ts'
import type { DatabaseSession, Transaction } from './database.ts'

/** A part of the store's thread that asks the database. What does not concern it it leaves out. */
export type Desk = ThreadPart & {
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
