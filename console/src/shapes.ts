import type { z } from 'zod'
import type { accountShape } from '../../src/operations/accounts.ts'
import type { lineShape } from '../../src/operations/entry-lines.ts'
import type { keyShape } from '../../src/operations/keys.ts'
import type {
  ClientRow,
  DemoState,
  RequestRow,
  Setup,
  Status,
  TranslationTold,
} from '../../src/operations/live-shapes.ts'
import type { operatorShape } from '../../src/operations/operators.ts'
import type { ledPerson, ownExplanation, ownModel, ownRow, ownSession } from '../../src/operations/own.ts'
import type { WebhookRow } from '../../src/operations/running.ts'
import type { Explanation, ModelRow, UpstreamState } from '../../src/operations/shapes.ts'
import type { Measure, ToldUsage } from '../../src/operations/usage-shape.ts'
import type { usageRowShape } from '../../src/operations/usage-table.ts'
import type { Bucket } from './pure/range.ts'

/* The types of the admin API's answers. */

export type Account = z.output<typeof accountShape>
export type Entry = z.output<typeof lineShape>
export type Need = NonNullable<Status['needs']>[number]
export type { DemoState, Explanation, ModelRow, RequestRow, Setup, Status, UpstreamState, WebhookRow }
export type SetupClient = ClientRow
export type Translation = TranslationTold

/** A row of a bill. */
export type TableRow = z.output<typeof usageRowShape>

/**
 * A page of a list.
 * @property away only on the last page: detached months, whose rows would follow
 * @property unbilled_since only on the last page of requests: the time since which requests without a bill are listed
 */
export type Listed<T> = { items: readonly T[]; next: string | null; away?: readonly string[]; unbilled_since?: string }

export type Key = z.output<typeof keyShape>
export type Budget = NonNullable<Key['budget']>

export type IssuedKey = { key?: string; id: string; prefix: string }

export type Me =
  | {
      kind: 'operator'
      name: string
      role: OperatorRole
      expires: string
      account: null
      key: null
      models: null
      pages: null
      time_zone: string
      credit_name: string
    }
  | {
      kind: 'owner'
      name: string
      /** Null for the owner of a key who has not signed in as a person. */
      role: 'lead' | 'member' | null
      expires: string | null
      account: { id: string; name: string; state: Account['state']; balance: string }
      key: Key & { spent: string }
      models: readonly string[]
      pages: readonly string[]
      time_zone: string
      credit_name: string
    }

/* The types of the answers to the owner of a key. */
export type OwnRequest = z.output<typeof ownRow>
export type OwnExplanation = z.output<typeof ownExplanation>
export type OwnModel = z.output<typeof ownModel>
export type OwnSession = z.output<typeof ownSession>
export type LedPerson = z.output<typeof ledPerson>

export type Session = { kind: 'operator' | 'owner'; name: string; role: OperatorRole | null; expires: string }

export type Operator = z.output<typeof operatorShape>
type OperatorRole = Operator['role']

export type AuditRecord = {
  seq: number
  at: string
  actor: string
  from: string | null
  operation: string
  object: string
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
  digest: string
}

export type Tick = {
  at: string
  requests: number
  errors: number
  credits: string
  input_tokens: number
  output_tokens: number
  streams: number
  /** Servers of the store whose events are missing. */
  unreached?: string[]
  /** Models that fail now. */
  failing?: string[]
}

export type { Measure }
export type Dimension = 'account' | 'key' | 'model' | 'wires' | 'upstream' | 'outcome'

/** The figures of one series, of all others together, or of the total. */
export type Figures = ToldUsage['total']
export type Percentiles = NonNullable<Figures['first_byte_ms']>
export type Series = ToldUsage['series'][number]

/** Figures that a plot can draw: they are in buckets, not one sum over the whole range. */
export type Usage = Omit<ToldUsage, 'bucket'> & { bucket: Bucket }
