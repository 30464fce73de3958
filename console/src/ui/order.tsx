import { type ComponentChildren, Fragment } from 'preact'
import { useState } from 'preact/hooks'

/* The order of the rows of a table, which its headings change. */

/** A value by which rows are sorted. Rows without a value are last in both directions. */
export type Sortable = string | number | bigint | boolean | null | undefined

/** A heading that was pressed. @property head identifies the column */
export type Order = { head: string; isDown: boolean } | undefined

/** Sorts rows as a heading asks; rows with equal values keep their order. */
export function sortRows<Row>(rows: readonly Row[], by: (row: Row) => Sortable, isDown: boolean): Row[] {
  const sign = isDown ? -1 : 1
  const known = (value: Sortable) => value !== null && value !== undefined && value !== ''
  return rows
    .map((row) => ({ row, value: by(row) }))
    .sort((a, b) => {
      if (!known(a.value) || !known(b.value)) return Number(known(b.value)) - Number(known(a.value))
      return sign * compare(a.value!, b.value!)
    })
    .map(({ row }) => row)
}

function compare(a: NonNullable<Sortable>, b: NonNullable<Sortable>): number {
  if (typeof a === 'string' && typeof b === 'string')
    return a.localeCompare(b, 'en', { numeric: true, sensitivity: 'base' })
  return a < b ? -1 : a > b ? 1 : 0
}

/** Returns the order after a heading was pressed: first its usual direction, then the other one, then no order. */
function nextOrder(order: Order, head: string, usuallyDown: boolean): Order {
  if (order?.head !== head) return { head, isDown: usuallyDown }
  return order.isDown === usuallyDown ? { head, isDown: !usuallyDown } : undefined
}

/** @param first the order before a heading is pressed */
export function useOrder(first?: Order) {
  const [order, setOrder] = useState(first)
  return {
    order,
    press: (head: string, usuallyDown: boolean) => setOrder(nextOrder(order, head, usuallyDown)),
    reset: () => setOrder(undefined),
  }
}

type Props = {
  class: string
  /** Undefined if the rows are not sorted by this column. */
  isDown: boolean | undefined
  /** Undefined if rows cannot be sorted by this column. */
  press: (() => void) | undefined
  children: ComponentChildren
}

/** A heading that is a button. Screen readers read how the rows are sorted. */
export function SortHead({ class: kind, isDown, press, children }: Props) {
  const Inner = press ? 'button' : Fragment
  return (
    <th scope="col" class={kind} aria-sort={isDown === undefined ? undefined : isDown ? 'descending' : 'ascending'}>
      <Inner {...(press && { type: 'button', class: 'sort', onClick: press })}>
        {children}
        {press && (
          <span class="direction" aria-hidden="true">
            {isDown === undefined ? '' : isDown ? '↓' : '↑'}
          </span>
        )}
      </Inner>
    </th>
  )
}
