/**
 * Whether a user who has `own` of the `taken` places may take one more of `most` places. Nobody gets more than half of
 * the places that the others leave free, so nobody can take all.
 */
export function mayTake(own: number, taken: number, most: number): boolean {
  return own < most - taken
}
