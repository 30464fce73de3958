/** Answers for all servers of the store name those that could not be asked. Other answers say nothing of it. */
const isOfAll = /^\/(requests|accounts)\b/

/**
 * The servers that the last answer for all was without, as one text.
 * @param path of this answer, below /api/v1
 * @param named the header of this answer
 * @param before the text before this answer
 */
export function findUnreached(path: string, named: string | null, before: string | undefined): string | undefined {
  return isOfAll.test(path) ? (named ?? undefined) : before
}
