import { signal } from '@preact/signals'
import { apiBase, base, consoleBase } from './base.ts'
import { keepInTab, recallInTab } from './store.ts'

const stored = 'demo'

/** Whether this tab shows the demo: a store with 30 days of made-up data, which is only read. */
export const isDemo = signal(globalThis.window !== undefined && recallInTab(stored) === 'yes')

/** Paths that the gateway answers even in the demo: those about the signed-in person and about the demo itself. */
const real = /^\/(?:session|me|demo)(?:$|[/?])/

/** Returns the base path of the API that answers a path. */
export function apiOf(path: string): string {
  return isDemo.peek() && !real.test(path) ? `${base}demo/api/v1` : apiBase
}

/** Shows the demo in this tab, or the gateway itself again. The page is loaded again. */
export function showDemo(isShown: boolean): void {
  keepInTab(stored, isShown ? 'yes' : '')
  window.location.assign(consoleBase)
}
