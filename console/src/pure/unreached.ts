/** Matches paths whose answers are about all servers of the store, and name the servers that could not be asked. */
const isOfAll = /^\/(requests|accounts)\b/

/**
 * Returns the servers that are missing in the last answer for all servers, as one text.
 * @param path of this answer, below /api/v1
 * @param named the header of this answer
 * @param before the text after the previous answers
 */
export function findUnreached(path: string, named: string | null, before: string | undefined): string | undefined {
  return isOfAll.test(path) ? (named ?? undefined) : before
}
