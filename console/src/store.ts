/* Values that the browser stores for this origin. If its storage is missing or full, they are lost. */

/** Stores a value until it is deleted. @param value undefined to delete it */
export function remember(name: string, value: string | undefined): void {
  put(() => window.localStorage, name, value)
}

export function recall(name: string): string | undefined {
  return get(() => window.localStorage, name)
}

const inTab = 'triwire.draft.'

/** Stores a value until the tab is closed or the person signs out. If it does not fit, the old value is deleted too. */
export function keepInTab(name: string, value: string): void {
  const isKept = put(() => window.sessionStorage, inTab + name, value)
  if (!isKept) put(() => window.sessionStorage, inTab + name, undefined)
}

export function recallInTab(name: string): string | undefined {
  return get(() => window.sessionStorage, inTab + name)
}

/** Deletes all values that are kept for this tab. */
export function forgetTab(): void {
  try {
    for (const name of Object.keys(window.sessionStorage))
      if (name.startsWith(inTab)) window.sessionStorage.removeItem(name)
  } catch {
    // Without storage there is nothing to delete.
  }
}

function put(storage: () => Storage, name: string, value: string | undefined): boolean {
  try {
    if (value === undefined) storage().removeItem(name)
    else storage().setItem(name, value)
    return true
  } catch {
    return false
  }
}

function get(storage: () => Storage, name: string): string | undefined {
  try {
    return storage().getItem(name) ?? undefined
  } catch {
    return undefined
  }
}
