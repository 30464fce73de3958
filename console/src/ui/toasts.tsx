import { signal } from '@preact/signals'

const said = signal<{ text: string; isBad: boolean } | undefined>(undefined)
let hiding: number | undefined

/** Shows a short message for a moment, also to screen readers. */
export function say(text: string, isBad = false): void {
  said.value = { text, isBad }
  window.clearTimeout(hiding)
  hiding = window.setTimeout(
    () => {
      said.value = undefined
    },
    isBad ? 12_000 : 4_000,
  )
}

export function Toasts() {
  const now = said.value
  return (
    <div class="toasts" role="status" aria-live="polite">
      {now && <div class={now.isBad ? 'toast bad' : 'toast'}>{now.text}</div>}
    </div>
  )
}
