/** A time of the store for people and programs: ISO 8601 in UTC, null for never. */
export function formatTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}
