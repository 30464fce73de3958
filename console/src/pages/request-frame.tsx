import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { go, hrefOf, place } from '../location.ts'
import { Copy } from '../ui/copy.tsx'
import { Icon } from '../ui/icons.tsx'
import { useEscape } from '../ui/shortcuts.tsx'

type SplitProps = {
  /** The request that is explained; undefined to show the list alone. */
  id: string | undefined
  list: ComponentChildren
  explain: (id: string, close: () => void) => ComponentChildren
}

/**
 * Shows a list of requests, and beside it the explanation of one. Closing the explanation returns the focus to its row.
 */
export function RequestSplit({ id, list, explain }: SplitProps) {
  const close = useMemo(
    () => () => {
      document.querySelector<HTMLElement>('tr.selected a')?.focus()
      go(hrefOf({ page: 'requests', query: place.peek().query }))
    },
    [],
  )
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
        <h2>Request</h2>
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
