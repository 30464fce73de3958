/** Stores a value in the browser, for this origin. A browser without storage forgets it. @param value undefined: delete it */
export function remember(name: string, value: string | undefined): void {
  try {
    if (value === undefined) window.localStorage.removeItem(name)
    else window.localStorage.setItem(name, value)
  } catch {
    // Without storage the value is lost, and the default is used next time.
  }
}

export function recall(name: string): string | undefined {
  try {
    return window.localStorage.getItem(name) ?? undefined
  } catch {
    return undefined
  }
}
