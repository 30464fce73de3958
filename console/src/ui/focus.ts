/* Keeps the focus near people's work. Browsers drop it when its element is removed or disabled (WCAG 2.4.3, CON-7). */

let last: { element: Element; around: readonly Element[] } | undefined

/** Watches the page. A focus that is lost goes to a neighbour of its element, or else to the page. */
export function keepFocus(): void {
  document.addEventListener('focusin', ({ target }) => {
    const element = target as Element
    last = { element, around: ancestorsOf(element) }
  })
  document.addEventListener('focusout', ({ target }) => {
    queueMicrotask(() => {
      // A click on the background removes the focus on purpose.
      if (last?.element === target && hasFocusGone() && !isUseless(last.element)) last = undefined
    })
  })
  new MutationObserver(() => {
    if (last && hasFocusGone() && isUseless(last.element)) focusNear(last.around)
  }).observe(document.body, { childList: true, subtree: true, attributeFilter: ['disabled'] })
}

/** Moves the focus to the page that is shown. */
export function focusPage(): void {
  document.getElementById('main')?.focus({ preventScroll: true })
}

function focusNear(around: readonly Element[]): void {
  const dialog = document.querySelector('dialog[open]')
  const place = around.find((one) => one.isConnected && one.matches('.acts, td, form, dialog'))
  const near = place?.querySelector<HTMLElement>('input, button:not(:disabled), a[href]')
  if (near && (!dialog || dialog.contains(near))) near.focus()
  else if (!dialog) focusPage()
}

function hasFocusGone(): boolean {
  return document.activeElement === document.body || document.activeElement === null
}

function isUseless(element: Element): boolean {
  return !element.isConnected || element.matches(':disabled')
}

function ancestorsOf(element: Element): Element[] {
  const found: Element[] = []
  for (let at = element.parentElement; at; at = at.parentElement) found.push(at)
  return found
}
