import { useId, useState } from 'preact/hooks'
import { withQuery } from '../api/ask.ts'
import { useLoad } from '../api/load.ts'
import { go, hrefOf, pageHref } from '../location.ts'
import { pages, withoutSecrets } from '../pure/place.ts'
import type { Account, Key, Listed, ModelRow } from '../shapes.ts'
import { Dialog } from './dialog.tsx'
import { titles } from './frame.tsx'
import { mayOpen } from './page-groups.ts'
import { useSettled } from './settled.ts'
import { isSearchOpen } from './shortcuts.tsx'

type Found = { href: string; kind: string; text: string; more?: string | undefined }

/** Finds an account, key, model, request or page by its first characters. */
export function Palette() {
  if (!isSearchOpen.value) return null
  return <OpenPalette />
}

function close(): void {
  isSearchOpen.value = false
}

function OpenPalette() {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const found = useFound(withoutSecrets(text.trim()))
  const id = useId()
  const chosen = Math.min(at, found.length - 1)
  const follow = (one: Found | undefined) => {
    if (!one) return
    close()
    go(one.href)
  }
  return (
    <Dialog title="Find" close={close} wide>
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-label="Account, key, model, request id or page"
        aria-expanded={found.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={found.length > 0 ? `${id}-${chosen}` : undefined}
        placeholder="Account, key, model, request id or page"
        autocomplete="off"
        spellcheck={false}
        autoFocus
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') setAt(Math.min(found.length - 1, chosen + 1))
          else if (event.key === 'ArrowUp') setAt(Math.max(0, chosen - 1))
          else if (event.key === 'Enter') follow(found[chosen])
          else return
          event.preventDefault()
        }}
      />
      <div class="palette-list" role="listbox" id={`${id}-list`} aria-label="Found">
        {found.map((one, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are the field's
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
          <div
            key={one.href + one.kind}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => follow(one)}
          >
            <span class="kind">{one.kind}</span>
            <span class="name">{one.text}</span>
            <span class="small">{one.more}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="small">Nothing has that name.</p>}
    </Dialog>
  )
}

function useFound(text: string): Found[] {
  const q = useSettled(text)
  const asked = q.length > 0 && q.length <= 100 && !q.startsWith('req_')
  const accounts = useLoad<Listed<Account>>(asked ? withQuery('/accounts', { q, limit: 6 }) : undefined)
  const keys = useLoad<Listed<Key>>(asked ? withQuery('/keys', { q, limit: 6 }) : undefined)
  const models = useLoad<Listed<ModelRow>>('/models')
  if (text.startsWith('req_'))
    return [{ href: hrefOf({ page: 'requests', id: text }), kind: 'Request', text, more: 'explain it' }]
  const low = text.toLowerCase()
  const isNamed = (name: string) => name.toLowerCase().includes(low)
  return [
    ...pages
      .filter((page) => mayOpen(page) && isNamed(titles[page]))
      .map((page) => ({ href: pageHref(page), kind: 'Page', text: titles[page] })),
    ...(asked ? (accounts.data?.items ?? []) : []).map(({ id, name }) => ({
      href: pageHref('accounts', id),
      kind: 'Account',
      text: name,
      more: id,
    })),
    ...(asked ? (keys.data?.items ?? []) : []).map(({ id, label, prefix, account_name }) => ({
      href: hrefOf({ page: 'keys', id }),
      kind: 'Key',
      text: label ?? prefix,
      more: `${prefix}…${account_name ? ` of ${account_name}` : ''}`,
    })),
    ...(text === '' ? [] : (models.data?.items ?? []))
      .filter(({ id, also }) => isNamed(id) || also.some(isNamed))
      .slice(0, 8)
      .map(({ id, wire }) => ({ href: pageHref('models', id), kind: 'Model', text: id, more: wire })),
  ].slice(0, 20)
}
