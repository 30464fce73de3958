import { z } from 'zod'
import type { ListedSession } from '../accounts/sign-in/rows.ts'
import { readPlace } from './cursor.ts'
import * as field from './fields.ts'
import { findAccountId, findPersonId } from './filter.ts'
import { operation, page } from './operation.ts'

const sessionShape = field.named('Session', {
  id: z.string(),
  person: z.string().describe('the id of the person'),
  person_name: z.string().nullable(),
  account: z.string(),
  account_name: z.string().nullable(),
  role: z.string(),
  key: z.string().describe("the id of the session's key, which entries of the ledger name"),
  agent: z.string().nullable().describe('the name of the program, as the program sent it'),
  address: z.string().nullable().describe('the address from which the person signed in'),
  created: field.when,
  refreshed: field.when.describe('when the tokens of the session were last renewed'),
  last_used: field.when.nullable(),
  expires: field.when,
  ended: field.when.nullable(),
  why: z.string().nullable().describe('why the session has ended'),
})

/** A person's session as operators see it. */
export type SessionDetails = z.output<typeof sessionShape>

function tellSession(row: ListedSession): SessionDetails {
  return {
    id: row.id,
    person: row.personId,
    person_name: row.personName ?? null,
    account: row.accountId,
    account_name: row.accountName ?? null,
    role: row.role,
    key: row.keyId,
    agent: row.agent ?? null,
    address: row.address ?? null,
    created: field.formatTime(row.createdMs)!,
    refreshed: field.formatTime(row.refreshedMs)!,
    last_used: field.formatTime(row.lastUsedMs),
    expires: field.formatTime(row.expiresMs)!,
    ended: field.formatTime(row.endedMs),
    why: row.endedWhy ?? null,
  }
}

/** Operations on people's sessions, for operators. The people themselves use `own.sessions`. */
export const signInOperations = [
  operation({
    id: 'session.list',
    http: 'GET /sessions',
    role: 'viewer',
    kind: 'list',
    input: z.strictObject({
      account: field.account.optional(),
      person: field.ofPerson.optional(),
      ended: field.flag.optional().describe('also list sessions that have ended'),
      ...field.paging,
    }),
    output: sessionShape,
    problems: ['cursor_invalid'],
    text: 'list the sessions of people who have signed in, the newest first',
    cli: [
      {
        command: 'session list',
        options: { account: '--account <account>', person: '--person <person>', ended: '--ended' },
        rows: 'all',
      },
    ],
    async run({ books, beyond, nowMs, running }, { account, person, ended, limit }) {
      const accountId = account === undefined ? undefined : await findAccountId(books, account)
      const personId = person === undefined ? undefined : await findPersonId(books, person)
      const isLive = ended ? undefined : { nowMs, idleMs: running.sessionIdleMs() }
      const place = readPlace(beyond, ['number', 'string'])
      const rows = await books.pageSessions({ accountId, personId, isLive, beyond: place, limit: limit + 1 })
      return page(rows, limit, tellSession, (row) => [row.createdMs, row.id])
    },
  }),
  operation({
    id: 'session.end',
    http: 'POST /sessions/{session}/end',
    role: 'admin',
    input: z.strictObject({ session: field.text('must be a text').max(100).describe('the id of the session') }),
    output: sessionShape,
    problems: ['not_found'],
    text: 'end a session of a person, which makes its tokens invalid on all replicas',
    cli: [{ command: 'session end', arguments: ['session'] }],
    async run({ books }, { session }) {
      await books.endSession({ id: session }, 'ended')
      const [row] = await books.pageSessions({ id: session, limit: 1 })
      return { body: tellSession(row!) }
    },
  }),
]
