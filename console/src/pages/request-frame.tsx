import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { go, hrefOf, place } from '../location.ts'
import { Copy } from '../ui/copy.tsx'
import { Icon } from '../ui/icons.tsx'
import { useEscape } from '../ui/shortcuts.tsx'

const explainHead = '.second h2'

type SplitProps = {
  /** The request that is explained; undefined to show the list alone. */
  id: string | undefined
  list: ComponentChildren
  explain: (id: string, close: () => void) => ComponentChildren
}

/**
 * Shows a list of requests, and beside it the explanation of one request. Opening an explanation moves the focus to its
 * heading. Closing it returns the focus to the row.
 */
export function RequestSplit({ id, list, explain }: SplitProps) {
  const close = useMemo(() => () => go(hrefOf({ page: 'requests', query: place.peek().query })), [])
  const last = useRef(id)
  useEffect(() => {
    const before = last.current
    last.current = id
    if (before === id) return
    // In a narrow window the list is hidden while an explanation is open, so a row can get the focus only afterwards.
    const row = `.first a[href*="${CSS.escape(encodeURIComponent(before ?? ''))}"]`
    document.querySelector<HTMLElement>(id === undefined ? row : explainHead)?.focus()
  }, [id])
  useEscape(id === undefined ? undefined : close)
  return (
    <div class={id === undefined ? 'split' : 'split open'}>
      <div class="first">{list}</div>
      {id !== undefined && (
        <aside class="second" aria-label="Request explained">
          {explain(id, close)}
        </aside>
      )}
    </div>
  )
}

/** The panel that explains a request. @property close undefined if it cannot be closed */
export function ExplainPanel({
  id,
  close,
  children,
}: {
  id: string
  close?: (() => void) | undefined
  children: ComponentChildren
}) {
  return (
    <div class="panel explain">
      <header>
        <h2 tabIndex={-1}>Request</h2>
        <code class="small">{id}</code>
        <div class="tools">
          <Copy text={id} label="Copy request id" quiet />
          {close && (
            <button type="button" class="quiet" aria-label="Close" onClick={close}>
              <Icon name="close" />
            </button>
          )}
        </div>
      </header>
      {children}
    </div>
  )
}
