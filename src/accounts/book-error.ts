import { withoutKeys } from './keys.ts'

export type BookErrorCode =
  | 'name_invalid'
  | 'name_taken'
  | 'no_account'
  | 'no_key'
  | 'key_ambiguous'
  | 'key_revoked'
  | 'key_expired'
  | 'key_rotated'
  | 'label_invalid'
  | 'label_secret'
  | 'reference_missing'
  | 'reference_invalid'
  | 'reference_reserved'
  | 'reference_conflict'
  | 'overflow'
  | 'stale'
  | 'too_many_rows'
  | 'no_operator'
  | 'operator_name_invalid'
  | 'operator_name_taken'
  | 'once_mismatch'
  | 'zone_invalid'
  | 'servers_run'
  | 'clock_doubtful'
  | 'effective_ahead'
  | 'effective_early'
  | 'no_person'
  | 'person_ambiguous'
  | 'person_name_invalid'
  | 'external_id_invalid'
  | 'email_invalid'
  | 'person_unnamed'
  | 'person_taken'
  | 'person_elsewhere'
  | 'person_same'
  | 'person_twice'
  | 'person_unbound'
  | 'key_of_session'
  | 'no_session'
  | 'no_grant'
  | 'grant_decided'
  | 'month_away'
  | 'month_open'
  | 'month_order'
  | 'month_unfolded'
  | 'zone_unrecorded'

/** A rule of the books forbids the requested change. src/operations chooses the text that people see. */
export class BookError extends Error {
  readonly code: BookErrorCode
  /**
   * The name, id or reference that caused the error. It may differ from the typed text, because texts that may be keys
   * are cut.
   */
  readonly subject: string
  /** The line of an imported file that caused the error. */
  readonly line: number | undefined

  constructor(code: BookErrorCode, subject: string, line?: number) {
    const shown = withoutKeys(subject)
    super(`${code}: ${shown}`)
    this.code = code
    this.subject = shown
    this.line = line
  }
}
