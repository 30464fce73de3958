import { useLayoutEffect, useState } from 'preact/hooks'
import { keepInTab, recallInTab } from '../store.ts'

/**
 * The state of a form that survives a reload and going back. The browser keeps it for this tab only, until the tab is
 * closed or the person signs out.
 * @param keep returns the part of the kept state that still applies
 */
export function useDraft<T extends object>(
  name: string,
  initial: T,
  keep: (kept: T) => T = (kept) => kept,
): [draft: T, change: (changes: Partial<T>) => void] {
  const [draft, setDraft] = useState<T>(() => keep({ ...initial, ...read(recallInTab(name)) }))
  // The draft is stored before the next frame, because a reload may follow at once.
  useLayoutEffect(() => keepInTab(name, JSON.stringify(draft)), [draft])
  return [draft, (changes) => setDraft((before) => ({ ...before, ...changes }))]
}

function read(text: string | undefined): object {
  try {
    return JSON.parse(text ?? '{}') as object
  } catch {
    return {}
  }
}
