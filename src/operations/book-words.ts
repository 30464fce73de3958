import { StoreSilent } from '../accounts/account.ts'
import { BookError, type BookErrorCode } from '../accounts/book-error.ts'
import { returnReference } from '../accounts/entries.ts'
import { ProblemError, type ProblemName } from './problem.ts'

type BookErrorWords = {
  problem: ProblemName
  say(subject: string): string
  /** The field that the rule is about, if there is one. It has the same name in all operations. */
  field?: string
  /** The cure, for a person at the command line. */
  cure?: string
}

/** The problem and the message for each rule of the books. */
const words: Record<BookErrorCode, BookErrorWords> = {
  name_invalid: {
    problem: 'invalid_request',
    field: 'name',
    say: () =>
      'An account name has 1 to 100 characters, all of which can be seen, no blanks around, not the form of an id, and no key in it',
  },
  name_taken: {
    problem: 'conflict',
    field: 'name',
    say: (name) => `There is already an account named "${name}"`,
    cure: 'choose another name',
  },
  no_account: {
    problem: 'not_found',
    say: (account) => `There is no account "${account}"`,
    cure: 'see triwire account list',
  },
  no_key: { problem: 'not_found', say: (key) => `There is no key "${key}"`, cure: 'see triwire key list' },
  key_ambiguous: {
    problem: 'invalid_request',
    say: (prefix) => `Several keys begin with ${prefix}`,
    cure: 'name one by its id, see triwire key list',
  },
  key_revoked: {
    problem: 'conflict',
    say: (id) => `Key ${id} is revoked`,
    cure: 'make a new one with triwire key create',
  },
  key_expired: {
    problem: 'conflict',
    say: (id) => `Key ${id} has ended`,
    cure: 'give it another end with triwire key set, or make a new one',
  },
  key_rotated: {
    problem: 'conflict',
    say: (id) => `Key ${id} was rotated, or is a person's own that was given a sooner end, and lives no longer`,
    cure: 'give another end to the key that followed it, or have a new one made',
  },
  key_of_session: {
    problem: 'conflict',
    say: (id) => `Key ${id} is that of a session, which belongs to its person and renews its tokens by itself`,
    cure: 'to end the session, use triwire session end',
  },
  no_session: {
    problem: 'not_found',
    say: (id) => `There is no session "${id}"`,
    cure: 'see triwire session list',
  },
  no_grant: { problem: 'not_found', say: () => 'There is no such sign-in, or no longer', cure: 'begin a new one' },
  grant_decided: { problem: 'conflict', say: () => 'This sign-in was decided already', cure: 'begin a new one' },
  label_invalid: {
    problem: 'invalid_request',
    field: 'label',
    say: () => 'A label has 1 to 100 characters, all of which can be seen, and no blanks around',
  },
  label_secret: {
    problem: 'invalid_request',
    field: 'label',
    say: () => 'A label is not secret: it must not hold a key',
  },
  reference_missing: {
    problem: 'invalid_request',
    field: 'reference',
    say: () => 'A credit needs a reference: the number of its payment, or why it is given',
  },
  reference_invalid: {
    problem: 'invalid_request',
    field: 'reference',
    say: () => 'A reference has 1 to 500 characters, all of which can be seen, and no blanks around',
    cure: 'choose another one',
  },
  reference_reserved: {
    problem: 'invalid_request',
    field: 'reference',
    say: () => `References that begin with "${returnReference('')}", "grant:" or "lapse:" are the ledger's own`,
    cure: 'choose another one',
  },
  reference_conflict: {
    problem: 'reference_conflict',
    field: 'reference',
    say: (reference) => `Reference "${reference}" was used for another account or amount`,
    cure: 'choose another one',
  },
  overflow: {
    problem: 'conflict',
    say: () => 'The account cannot hold so much',
    cure: 'credit a smaller amount',
  },
  stale: { problem: 'precondition_failed', say: (id) => `${id} has changed since it was read` },
  too_many_rows: {
    problem: 'invalid_request',
    say: (most) => `There are more than ${most} rows in it: tell fewer things apart, or ask for a shorter time`,
  },
  no_operator: {
    problem: 'not_found',
    say: (name) => `There is no operator "${name}"`,
    cure: 'see triwire operator list',
  },
  operator_name_invalid: {
    problem: 'invalid_request',
    field: 'name',
    say: () => 'The name of an operator has 1 to 64 letters, digits and . _ @ -',
  },
  operator_name_taken: {
    problem: 'conflict',
    field: 'name',
    say: (name) => `There is already an operator named "${name}"`,
    cure: 'revoke that one, or choose another name',
  },
  once_mismatch: {
    problem: 'idempotency_mismatch',
    say: () => 'This Idempotency-Key was used for another request in the last 24 hours',
  },
  zone_invalid: {
    problem: 'invalid_request',
    say: (zone) => `There is no time zone "${zone}" whose days begin on a quarter hour`,
    cure: 'name one such as UTC or Europe/Berlin',
  },
  effective_ahead: {
    problem: 'invalid_request',
    field: 'effective',
    say: (time) => `${time} is ahead of the clock of the store`,
    cure: 'name the time until which the clock was wrong',
  },
  effective_early: {
    problem: 'invalid_request',
    field: 'effective',
    say: (time) => `The clock was still right at ${time}, when an entry was posted or an account was made`,
    cure: 'name that time or a later one: when the last entry with a wrong time was made',
  },
  servers_run: {
    problem: 'conflict',
    say: (servers) => `Servers count by the days of the zone that is recorded: ${servers}`,
    cure: 'stop all of them first; one that was killed is forgotten after half a minute',
  },
  clock_doubtful: {
    problem: 'conflict',
    say: (time) => `The clock that dates entries shows ${time}, which is in doubt`,
    cure: 'set the clock right, or confirm that time with triwire clock confirm',
  },
  month_away: {
    problem: 'conflict',
    say: (months) => `Entries of ${months} are away: they were archived`,
    cure: 'name times after that, or bring them back with triwire ledger archive attach MONTH',
  },
  month_open: {
    problem: 'invalid_request',
    field: 'month',
    say: (month) => `${month} is no month that has been over for a week, in the zone of the store`,
    cure: 'name a month that has',
  },
  month_order: {
    problem: 'conflict',
    say: (month) => `Entries of ${month} are not archived yet, and months are detached from the oldest on`,
    cure: 'detach that one first',
  },
  month_unfolded: {
    problem: 'conflict',
    say: (account) => `Entries of account ${account} are not in the figures for reports yet`,
    cure: 'start a server on the store, which adds them within seconds, and try again',
  },
  zone_unrecorded: {
    problem: 'conflict',
    say: (store) => `${store} has no reporting zone yet, which months follow`,
    cure: 'start a server on the store once',
  },
  no_person: {
    problem: 'not_found',
    say: (person) => `There is no person "${person}"`,
    cure: 'see triwire person list',
  },
  person_ambiguous: {
    problem: 'invalid_request',
    say: (person) => `Several people are called "${person}"`,
    cure: 'name one by id or external id, see triwire person list',
  },
  person_name_invalid: {
    problem: 'invalid_request',
    field: 'name',
    say: () =>
      'The name of a person has 1 to 100 characters, all of which can be seen, no blanks around, and not the form of an id or a key',
  },
  external_id_invalid: {
    problem: 'invalid_request',
    field: 'external_id',
    say: () => 'An external id has 1 to 200 characters, all of which can be seen, no blanks around, and holds no key',
  },
  email_invalid: {
    problem: 'invalid_request',
    field: 'email',
    say: () => 'An e-mail address is such as ada@example.com',
  },
  person_unnamed: {
    problem: 'invalid_request',
    say: () => 'A person has a name, an external id or an e-mail address',
  },
  person_taken: {
    problem: 'conflict',
    field: 'external_id',
    say: (id) => `There is already a person with the external id "${id}"`,
    cure: 'change that one with triwire person set',
  },
  person_elsewhere: {
    problem: 'conflict',
    say: (id) => `Person ${id} is of one account, and this is about a key of another`,
    cure: 'revoke the key, or take the account off the person with triwire person set --account none',
  },
  person_same: {
    problem: 'conflict',
    say: (id) => `Both are person ${id}`,
  },
  person_twice: {
    problem: 'invalid_request',
    say: (line) => `It is of the same person as ${line}`,
    cure: 'leave one of them out',
  },
  person_unbound: {
    problem: 'invalid_request',
    field: 'account',
    say: () => 'A person with a budget or a limit of requests is of one account',
    cure: 'name that too, or take away the budget and the limit with none',
  },
}

/**
 * Converts an error of the books, or the error of a store that does not answer, to a problem. Other errors are returned
 * unchanged.
 */
export function problemOf(error: unknown): unknown {
  if (error instanceof StoreSilent)
    return new ProblemError('store_unavailable', 'The store cannot be asked now: try again.', { cause: error })
  if (!(error instanceof BookError)) return error
  const { problem, field } = words[error.code]
  const detail = sayWhere(error)
  // An error with a line is about a line of an imported list.
  const name = error.line === undefined ? field : 'csv'
  return new ProblemError(problem, detail, { cause: error, mistakes: name ? [{ pointer: `/${name}`, detail }] : [] })
}

/** Returns the message and the cure of an error, for a person at the command line. */
export function sentenceOf(error: BookError): string {
  const { cure } = words[error.code]
  return sayWhere(error) + (cure === undefined ? '' : `: ${cure}`)
}

function sayWhere({ code, subject, line }: BookError): string {
  return (line === undefined ? '' : `line ${line}: `) + words[code].say(subject)
}
