/** What a browser keeps for this origin; one that keeps nothing forgets it. @param value undefined: no more */
export function remember(name: string, value: string | undefined): void {
  try {
    if (value === undefined) window.localStorage.removeItem(name)
    else window.localStorage.setItem(name, value)
  } catch {
    // It is said again next time.
  }
}

export function recall(name: string): string | undefined {
  try {
    return window.localStorage.getItem(name) ?? undefined
  } catch {
    return undefined
  }
}
