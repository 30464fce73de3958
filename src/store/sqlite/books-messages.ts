import type { BookErrorCode } from '../../accounts/book-error.ts'
import type { Act } from '../../accounts/trail.ts'

/* What the serving thread and the thread of the books say to each other. */

export type Asked = { id: number; method: string; args: readonly unknown[]; act: Act; nowMs: number }

export type Answered =
  | { id: number; result: unknown }
  | { id: number; rule: BookErrorCode; subject: string }
  /** The store could not do it: it is held by others, full, damaged or gone. */
  | { id: number; trouble: string }
