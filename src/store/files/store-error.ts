/** A refusal with a text for the operator: what is wrong with the store or the command, and the cure. */
export class StoreError extends Error {}

/** The primary result code of a failure of SQLite, 0 for any other. */
export function resultCode(error: unknown): number {
  return (((error as { errcode?: number } | undefined)?.errcode ?? 0) as number) & 0xff
}
