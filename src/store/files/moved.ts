/** The present place of a store's content. `to` is empty in a store that is being filled and is not whole yet. */
export type Moved = { to: string; movedMs: number }

/** Why nothing is written to such a store, and no server serves from it. */
export function sayMoved(shown: string, { to }: Pick<Moved, 'to'>): string {
  return to === ''
    ? `${shown} is an unfinished copy: repeat triwire store copy until it says that both are equal`
    : `${shown} was moved to ${to}: name that store instead, or move it back with triwire store copy`
}
