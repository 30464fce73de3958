import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { go } from '../location.ts'
import { type Sortable, SortHead, sortRows, useOrder } from './order.tsx'

export type Column<Row> = {
  head: string
  /** The unit of the numbers, shown after the head. */
  unit?: string
  kind?: 'number' | 'text' | 'code' | 'fit' | 'named'
  /** Whether the heading is only for screen readers. */
  hidesHead?: boolean
  /** Whether the column is left out on a phone. */
  wide?: boolean
  /** The value by which the heading sorts the rows that are loaded. */
  by?(row: Row): Sortable
  /** The orders in which the gateway can list by this column. Each press of the heading requests the next one. */
  sorts?: readonly string[]
  cell(row: Row, at: number): ComponentChildren
}

type Props<Row> = {
  /** The name of the table for screen readers. */
  label: string
  rows: readonly Row[]
  columns: readonly Column<Row>[]
  keyOf(row: Row, at: number): string
  /** The address that a row leads to; the link itself is in its first cell. */
  hrefOf?(row: Row): string
  selected?: string | undefined
  hasMore?: boolean
  more?(): void
  refusedMore?: boolean
  /** The order in which the gateway lists the rows; undefined: its usual order. `onSort` requests another order. */
  sort?: string
  onSort?(sort: string | undefined): void
  /** The head of the column by which the rows are sorted at first, the largest value first. */
  startsBy?: string
  /** Rows below the last one, which are not sorted. */
  foot?: ComponentChildren
  /** Further classes of the table. @example 'plain': cells break into lines, so all rows are rendered */
  class?: string
}

/** The properties that a table needs of a list that is loaded page by page. */
export function furtherOf(list: { hasMore: boolean; more(): Promise<void>; refusal: unknown }) {
  return { hasMore: list.hasMore, more: () => void list.more(), refusedMore: list.refusal !== undefined }
}

/** The height of a row in px, the same as in the style. */
const rowHeight = 36
/** Rows to render beyond the visible ones. */
const margin = 12
/** Up to this many rows, all are rendered. */
const fewRows = 60

/**
 * A table of any length. Only the visible rows, and some around them, are in the page. A heading sorts the whole list
 * if the gateway can list in that order, and otherwise the rows that are loaded.
 */
export function Table<Row>(props: Props<Row>) {
  const { label, columns, keyOf, hrefOf, selected, hasMore, more, refusedMore, sort, onSort, foot } = props
  const body = useRef<HTMLTableSectionElement>(null)
  const first = columns.find(({ head }) => head === props.startsBy)
  const { order, press, reset } = useOrder(first && { head: nameOf(first), isDown: true })
  const sorting = columns.find((column) => nameOf(column) === order?.head)
  const rows = sorting?.by && order ? sortRows(props.rows, sorting.by, order.isDown) : props.rows
  const isPlain = props.class?.includes('plain') ?? false
  const seen = useSeen(body, rows.length, isPlain)
  useEffect(() => {
    // In a sorted table, rows of the next page would appear between those that are read.
    if (hasMore && !refusedMore && !sorting && seen.reach >= rows.length) more?.()
  })
  return (
    // A scrolling area must be reachable without a mouse: by the links in it, or else by itself.
    <div class="table-frame" {...(!hrefOf && { tabIndex: 0, role: 'region', 'aria-label': label })}>
      <table class={`table ${props.class ?? ''}`} aria-label={label} aria-rowcount={hasMore ? -1 : rows.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => {
              const { head, unit, kind = 'text', wide, by, sorts, hidesHead } = column
              const name = nameOf(column)
              const listed = !sorting && sort !== undefined && sorts?.includes(sort) ? sort.startsWith('-') : undefined
              const ask = () => {
                reset()
                onSort?.(sorts![sorts!.indexOf(sort ?? '') + 1])
              }
              return (
                <SortHead
                  key={name}
                  class={`${kind}${wide ? ' wide' : ''}`}
                  isDown={order?.head === name ? order.isDown : listed}
                  press={sorts && onSort ? ask : by && (() => press(name, kind === 'number'))}
                >
                  {hidesHead ? <span class="offscreen">{head}</span> : head}
                  {unit && <span class="unit"> {unit}</span>}
                </SortHead>
              )
            })}
          </tr>
        </thead>
        <tbody ref={body}>
          {seen.first > 0 && <Spacer rows={seen.first} columns={columns.length} />}
          {rows.slice(seen.first, seen.last).map((row, offset) => {
            const at = seen.first + offset
            const key = keyOf(row, at)
            const href = hrefOf?.(row)
            return (
              <tr
                key={key}
                data-row={at}
                aria-rowindex={at + 2}
                class={`${href ? 'leads' : ''}${key === selected ? ' selected' : ''}`}
                onClick={href ? (event) => follow(event, href) : undefined}
              >
                {columns.map(({ head, unit, kind = 'text', wide, cell }) => (
                  <td key={`${head} ${unit}`} class={`${kind}${wide ? ' wide' : ''}`}>
                    {cell(row, at)}
                  </td>
                ))}
              </tr>
            )
          })}
          {seen.last < rows.length && <Spacer rows={rows.length - seen.last} columns={columns.length} />}
        </tbody>
        {foot && <tfoot>{foot}</tfoot>}
      </table>
      {hasMore && sorting && (
        <p class="small pad" role="status">
          Sorted are the {rows.length} rows that are loaded. There are more.
        </p>
      )}
      {hasMore && (
        <button type="button" class="more" onClick={more}>
          Show more
        </button>
      )}
    </div>
  )
}

/** Identifies a column: two columns may have the same head and different units. */
function nameOf({ head, unit }: { head: string; unit?: string }): string {
  return `${head} ${unit}`
}

function Spacer({ rows, columns }: { rows: number; columns: number }) {
  return (
    <tr class="spacer">
      <td colSpan={columns} style={{ height: `${rows * rowHeight}px` }} />
    </tr>
  )
}

/** Follows the link of a row when the row is clicked, except on a control or after text was selected. */
function follow(event: MouseEvent, href: string): void {
  if ((event.target as Element).closest('a, button, input, label, summary')) return
  if (window.getSelection()?.toString()) return
  if (event.metaKey || event.ctrlKey) window.open(href, '_blank', 'noopener')
  else go(href)
}

/**
 * Finds the rows to render from the position of the table in the window. A short list is rendered as a whole, even if
 * the window shows only a part of it. `reach` is the end of the visible rows with those around them.
 */
function useSeen(
  body: { current: HTMLTableSectionElement | null },
  count: number,
  isWhole: boolean,
): { first: number; last: number; reach: number } {
  // The first visible row. It is negative as long as the table begins further down than the window.
  const [top, setTop] = useState(Number.NEGATIVE_INFINITY)
  useEffect(() => {
    let frame = 0
    const look = () => {
      frame = 0
      const above = -(body.current?.getBoundingClientRect().top ?? 0)
      // The position changes in steps of several rows, so that not every pixel causes a rendering.
      setTop(Math.floor(above / rowHeight / 4) * 4)
    }
    const ask = () => {
      frame ||= window.requestAnimationFrame(look)
    }
    look()
    window.addEventListener('scroll', ask, { passive: true })
    window.addEventListener('resize', ask)
    return () => {
      window.cancelAnimationFrame(frame)
      window.removeEventListener('scroll', ask)
      window.removeEventListener('resize', ask)
    }
  }, [body])
  const seen = Math.ceil(window.innerHeight / rowHeight)
  const reach = top + seen + margin
  if (isWhole || count <= fewRows) return { first: 0, last: count, reach }
  const first = Math.max(0, Math.min(top - margin, count - seen - margin))
  return { first, last: Math.min(count, Math.max(0, top) + seen + margin), reach }
}
