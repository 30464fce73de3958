import type { ComponentChildren } from 'preact'
import type { Refusal } from '../api/ask.ts'
import type { Loaded } from '../api/load.ts'
import { tellTime } from '../pure/format.ts'
import { isOwner, viewerZone } from '../session.ts'
import type { Listed } from '../shapes.ts'
import { Icon } from './icons.tsx'
import { Words } from './words.tsx'

/** Shows a refusal with its details for support, and a button that tries again. */
export function Failure({ refusal, retry, lastMs }: { refusal: Refusal; retry?: () => void; lastMs?: number }) {
  return (
    <div class="failure" role="alert">
      <Icon name="trouble" />
      <div>
        <strong>{refusal.title}</strong>
        <p>
          <Words text={refusal.message} />
        </p>
        {refusal.requestId && (
          <p class="small">
            Request <code>{refusal.requestId}</code>
          </p>
        )}
        {lastMs ? (
          <p class="small">What is shown is of {tellTime(new Date(lastMs).toISOString(), Date.now(), viewerZone)}.</p>
        ) : null}
      </div>
      {retry && (
        <button type="button" onClick={retry}>
          Retry
        </button>
      )}
    </div>
  )
}

/** Shows one sentence and the next action, for a list without rows. */
export function Empty({ children, act }: { children: ComponentChildren; act?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>{children}</p>
      {act}
    </div>
  )
}

/**
 * Shows that no request fits. The gateway searches a long ledger step by step, so a page without requests need not be
 * the last one. A button then continues the search.
 */
export function NoneFits({
  of: { hasMore, isMore, more },
  ...none
}: Parameters<typeof Empty>[0] & { of: { hasMore: boolean; isMore: boolean; more(): Promise<void> } }) {
  if (!hasMore) return <Empty {...none} />
  const further = (
    <button type="button" aria-disabled={isMore} onClick={() => void more()}>
      Search further
    </button>
  )
  return <Empty act={further}>None of the newest requests fits. Older ones are not searched yet.</Empty>
}

/** Says below the last page of a list which rows are not listed, and why. */
export function NotListed({ of: { last } }: { of: { last: Listed<unknown> | undefined } }) {
  const since = last?.unbilled_since
  return (
    <>
      {since && (
        <p class="small pad">
          Of the requests before {tellTime(since, Date.now(), viewerZone)}, only those with a bill are listed. The
          others are only in the memory of the gateway, and a restart empties it.
        </p>
      )}
      <MonthsAway away={last?.away} />
    </>
  )
}

function MonthsAway({ away }: { away: readonly string[] | undefined }) {
  if (!away?.length) return null
  const attach = `triwire ledger archive attach ${away[0]}`
  return (
    <p class="note" role="status">
      Entries of {away.join(', ')} are away and not listed: they were archived.{' '}
      {isOwner() ? (
        'Ask the operator of the gateway to bring them back.'
      ) : (
        <>
          Bring them back with <code>{attach}</code>
          {away.length > 1 && ', month by month'}.
        </>
      )}
    </p>
  )
}

/** A placeholder as high as the content that is being loaded. */
export function Skeleton({ height, lines = 1 }: { height: number; lines?: number }) {
  return (
    <div class="skeletons" aria-hidden="true">
      {Array.from({ length: lines }, (_, at) => (
        <div class="skeleton" key={at} style={{ height: `${height}px` }} />
      ))}
    </div>
  )
}

/** Shows a placeholder, a failure or the content. Content that is being loaded again is dimmed. */
export function Shown<T>({
  of,
  height,
  lines,
  children,
}: {
  of: Loaded<T> & { reload(): void; isOld?: boolean }
  height: number
  lines?: number
  children: (data: T) => ComponentChildren
}) {
  const { data, refusal, reload, atMs, isOld } = of
  if (data === undefined)
    return refusal ? (
      <Failure refusal={refusal} retry={reload} />
    ) : (
      <div role="status" aria-label="Loading">
        <Skeleton height={height} {...(lines === undefined ? {} : { lines })} />
      </div>
    )
  return (
    <>
      {refusal && <Failure refusal={refusal} retry={reload} lastMs={atMs} />}
      <div class={isOld ? 'dimmed' : undefined} aria-busy={isOld}>
        {children(data)}
      </div>
    </>
  )
}

export function Panel({
  title,
  unit,
  tools,
  children,
  class: kind = '',
}: {
  title: string
  unit?: string | undefined
  tools?: ComponentChildren
  children: ComponentChildren
  class?: string
}) {
  return (
    <section class={`panel ${kind}`}>
      <header>
        <h2>{title}</h2>
        {unit && <span class="unit">{unit}</span>}
        {tools && <div class="tools">{tools}</div>}
      </header>
      {children}
    </section>
  )
}
