import { computed, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { consoleBase } from './base.ts'
import { changeQuery, formatPlace, type Place, type Query, readPlace } from './pure/place.ts'

/* The address in the browser decides which page is shown. */

const address = signal(read())

/** The page that the address names, with the id of its object and its query. */
export const place = computed<Place>(() => address.value)

/** The name of the object that the page is about, if its id is not its name. */
export const subject = signal<string | undefined>(undefined)

/** Names the object of the page while the component is mounted. */
export function useSubject(name: string): void {
  useEffect(() => {
    subject.value = name
    return () => {
      subject.value = undefined
    }
  }, [name])
}

/** Fields of the query that are kept when the page changes: the range of time. */
const kept = ['range', 'from', 'to'] as const

function read(): Place {
  const { pathname, search } = window.location
  return readPlace(pathname.startsWith(consoleBase) ? pathname.slice(consoleBase.length) : '', search)
}

export function hrefOf(place: Partial<Place>): string {
  return consoleBase + formatPlace(place)
}

/** Returns the address of another page, with the range of this one. */
export function pageHref(page: Place['page'], id?: string, query: Query = {}): string {
  const range = Object.fromEntries(
    kept.flatMap((name) => (place.value.query[name] ? [[name, place.value.query[name]]] : [])),
  )
  return hrefOf({ page, id, query: { ...range, ...query } })
}

export function go(href: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') window.history.pushState(null, '', href)
  else window.history.replaceState(null, '', href)
  const before = address.peek()
  address.value = read()
  if (before.page !== address.peek().page || before.id !== address.peek().id) window.scrollTo(0, 0)
}

/** Changes fields of this page's query; undefined removes one. */
export function setQuery(
  changes: Readonly<Record<string, string | undefined>>,
  how: 'push' | 'replace' = 'push',
): void {
  go(changedHref(changes), how)
}

/** Returns the address of this page with changed fields of its query. */
export function changedHref(changes: Readonly<Record<string, string | undefined>>): string {
  const { page, id, query } = place.value
  return hrefOf({ page, id, query: changeQuery(query, changes) })
}

const holders = new Set<() => void>()

/** Keeps Back and Forward from leaving the page, and calls `warn` instead. @returns a function that ends this */
export function holdPage(warn: () => void): () => void {
  holders.add(warn)
  return () => holders.delete(warn)
}

window.addEventListener('popstate', () => {
  if (holders.size === 0) {
    address.value = read()
    return
  }
  window.history.pushState(null, '', hrefOf(address.peek()))
  for (const warn of holders) warn()
})

/** Handles clicks on links of the console: they change the page without loading it. */
window.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return
  const link = (event.target as Element | null)?.closest?.('a')
  if (link?.target !== '' || link.hasAttribute('download')) return
  const { origin, pathname, search } = new URL(link.href)
  if (origin !== window.location.origin || !pathname.startsWith(consoleBase)) return
  event.preventDefault()
  go(pathname + search)
})
