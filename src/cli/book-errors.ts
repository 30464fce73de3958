import { BookError, type BookErrorCode } from '../accounts/book-error.ts'
import { returnReference } from '../accounts/entries.ts'

/** What the person at the command line reads: what is wrong, and the cure. */
const sentences: Record<BookErrorCode, (subject: string) => string> = {
  name_invalid: () => 'An account name has 1 to 100 characters and no blanks around',
  name_taken: (name) => `There is already an account named "${name}": choose another name`,
  no_account: (account) => `There is no account "${account}": see triwire account list`,
  no_key: (key) => `There is no key "${key}": see triwire key list`,
  key_ambiguous: (prefix) => `Several keys begin with ${prefix}: name one by its id, see triwire key list`,
  key_revoked: (id) => `Key ${id} is revoked: make a new one with triwire key create`,
  label_invalid: () => 'A label has 1 to 100 characters and no blanks around',
  label_secret: () => 'A label is not secret: it must not hold a key',
  reference_missing: () => 'A credit needs a reference: the number of its payment, or why it is given',
  reference_invalid: () => 'A reference has 1 to 500 characters, and no NUL among them: choose another one',
  reference_reserved: () =>
    `References that begin with "${returnReference('')}" are the ledger's own: choose another one`,
  reference_conflict: (reference) =>
    `Reference "${reference}" was used for another account or amount: choose another one`,
  overflow: () => 'The account cannot hold so much: credit a smaller amount',
}

/** A rule's refusal in words; anything else as it is. */
export function explainBookError(error: unknown): unknown {
  return error instanceof BookError ? new Error(sentences[error.code](error.subject), { cause: error }) : error
}
