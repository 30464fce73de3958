import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { go, pageHref } from '../location.ts'
import type { Page } from '../pure/place.ts'
import { audience } from '../session.ts'
import { recall, remember } from '../store.ts'
import { Dialog } from './dialog.tsx'
import { mayOpen } from './page-groups.ts'

/* Keyboard shortcuts. They can be switched off, for people who use speech input or press keys by accident. */

const storedName = 'triwire.shortcuts'
const areOn = signal(recall(storedName) !== 'off')
export const isHelpOpen = signal(false)
export const isSearchOpen = signal(false)

const goes: Readonly<Record<string, Page>> = {
  o: 'overview',
  f: 'finance',
  r: 'requests',
  a: 'accounts',
  k: 'keys',
  m: 'models',
  u: 'upstreams',
  p: 'playground',
  t: 'translate',
  s: 'setup',
  w: 'webhooks',
  l: 'audit',
  n: 'operators',
  e: 'people',
  i: 'sessions',
}

let pending: number | undefined
/** The functions for Escape. Each press calls the last one, which is the innermost. */
const escapes: (() => void)[] = []

export function useEscape(act: (() => void) | undefined): void {
  useEffect(() => {
    if (!act) return undefined
    escapes.push(act)
    return () => {
      escapes.splice(escapes.indexOf(act), 1)
    }
  }, [act])
}

export function startShortcuts(): void {
  window.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return
    if (document.querySelector('dialog[open]')) return
    if (event.key === 'Escape') {
      escapes.at(-1)?.()
      return
    }
    if (!areOn.peek()) return
    if (act(event.key)) event.preventDefault()
  })
}

function act(key: string): boolean {
  if (pending !== undefined) {
    window.clearTimeout(pending)
    pending = undefined
    const page = goes[key]
    if (!page || !mayOpen(page)) return false
    go(pageHref(page))
    return true
  }
  if (key === 'g') {
    pending = window.setTimeout(() => {
      pending = undefined
    }, 1_200)
    return true
  }
  if (key === '/' && audience() === 'operator') {
    isSearchOpen.value = true
    return true
  }
  if (key === '?') {
    isHelpOpen.value = true
    return true
  }
  if (key === 'j' || key === 'k') return moveRow(key === 'j' ? 1 : -1)
  return false
}

/** Moves the focus to the link of the next row, which Enter follows. */
function moveRow(by: 1 | -1): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>('tr[data-row]')].filter((row) => row.querySelector('a'))
  if (rows.length === 0) return false
  const focused = rows.findIndex((row) => row.contains(document.activeElement))
  const at = focused < 0 ? rows.findIndex((row) => row.classList.contains('selected')) : focused
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by]
  next?.querySelector<HTMLElement>('a')?.focus()
  next?.scrollIntoView({ block: 'nearest' })
  return true
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

const lines = [
  ['/', 'find an account, key, model or request'],
  ['j  k', 'next row, row before'],
  ['Enter', 'open the row'],
  ['Esc', 'close what is open'],
  ['← →', 'in a plot: step from time to time'],
  ['?', 'this help'],
] as const

export function Help() {
  if (!isHelpOpen.value) return null
  const shown = Object.entries(goes).filter(([, page]) => mayOpen(page))
  const known = lines.filter(([keys]) => keys !== '/' || audience() === 'operator')
  return (
    <Dialog
      title="Keys"
      close={() => {
        isHelpOpen.value = false
      }}
    >
      <dl class="shortcuts">
        {known.map(([keys, text]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
        {shown.map(([key, page]) => (
          <div key={key}>
            <dt>
              <kbd>g {key}</kbd>
            </dt>
            <dd>go to {page}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={areOn.value}
          onChange={(event) => {
            areOn.value = event.currentTarget.checked
            remember(storedName, areOn.value ? 'on' : 'off')
          }}
        />
        Keys do this
      </label>
    </Dialog>
  )
}
