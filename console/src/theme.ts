import { signal } from '@preact/signals'
import { recall, remember } from './store.ts'

/* Light, dark, or the system's theme. Plots are drawn again when it changes. */

const themes = ['auto', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const storedName = 'triwire.theme'
const system = window.matchMedia('(prefers-color-scheme: dark)')

export const theme = signal<Theme>(readStored())
/** Increases with every change of colours. */
export const colourVersion = signal(0)

export function startTheme(): void {
  apply()
  system.addEventListener('change', () => colourVersion.value++)
}

export function nextTheme(): void {
  const next = themes[(themes.indexOf(theme.peek()) + 1) % themes.length]!
  theme.value = next
  remember(storedName, next)
  apply()
}

function apply(): void {
  document.documentElement.dataset['theme'] = theme.peek()
  colourVersion.value++
}

function readStored(): Theme {
  const stored = recall(storedName)
  return themes.find((theme) => theme === stored) ?? 'auto'
}

/**
 * Returns a colour of the style in a form that a canvas accepts. Registered properties are returned as computed
 * colours.
 */
export function colour(token: string): string {
  return window.getComputedStyle(document.documentElement).getPropertyValue(`--${token}`).trim()
}
