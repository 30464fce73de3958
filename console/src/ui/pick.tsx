import { useEffect, useId, useState } from 'preact/hooks'
import { withQuery } from '../api/ask.ts'
import { useLoad } from '../api/load.ts'
import { setQuery } from '../location.ts'
import { withoutSecrets } from '../pure/place.ts'
import type { Account, Listed } from '../shapes.ts'
import { useSettled } from './settled.ts'

/** One object that can be chosen. @property more distinguishes it from others with the same name */
export type Choice = { id: string; name: string; more?: string | undefined }

type Props<Row> = {
  label: string
  hidesLabel?: boolean
  /** The name of the chosen object; empty if no object is chosen. */
  shown: string
  /** The API path that finds objects by a part of their name; for an empty text, the first ones. */
  pathOf(text: string): string
  choiceOf(row: Row): Choice
  /** @param choice undefined if the field was emptied */
  onPick(choice: Choice | undefined): void
  error?: string | undefined
}

/**
 * A field that finds an object by its name, among any number. Typing searches, and arrow keys and Enter choose. When
 * the person leaves the field, the object whose name or id is exactly the text is chosen, if there is only one.
 */
export function Pick<Row>(props: Props<Row>) {
  const { label, hidesLabel, shown, pathOf, choiceOf, onPick, error } = props
  const id = useId()
  const [text, setText] = useState<string | undefined>(undefined)
  const [isOpen, setOpen] = useState(false)
  const [at, setAt] = useState(-1)
  // Whether Enter was pressed before the choices were loaded.
  const [isAwaited, setAwaited] = useState(false)
  // Whether the field was left with a text.
  const [isLeft, setLeft] = useState(false)
  const asked = useSettled(withoutSecrets((text ?? '').trim()).slice(0, 100))
  const found = useLoad<Listed<Row>>(isOpen ? pathOf(asked) : undefined)
  const choices = isOpen ? (found.data?.items ?? []).map(choiceOf) : []
  const isFound = found.data !== undefined && asked === (text ?? '').trim()
  useEffect(() => {
    if (!isAwaited || !isFound) return
    setAwaited(false)
    if (choices[at]) pick(choices[at])
  }, [isAwaited, isFound])
  useEffect(() => {
    if (!isLeft || (!isFound && !found.refusal)) return
    const same = choices.filter(({ id, name }) => name === asked || id === asked)
    if (isFound && same.length === 1) pick(same[0])
    else close()
  }, [isLeft, isFound, found.refusal])
  useEffect(() => document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: 'nearest' }), [at])
  const close = () => {
    setOpen(false)
    setAwaited(false)
    setLeft(false)
    setText(undefined)
    setAt(-1)
  }
  const pick = (choice: Choice | undefined) => {
    close()
    onPick(choice)
  }
  const open = (next: number) => {
    setOpen(true)
    setAt(next)
  }
  return (
    <div class={`pick ${hidesLabel ? 'search-field' : 'field'}`}>
      <label for={id} class={hidesLabel ? 'offscreen' : undefined}>
        {label}
      </label>
      <input
        id={id}
        type="text"
        role="combobox"
        aria-expanded={choices.length > 0}
        aria-controls={choices.length > 0 ? `${id}-list` : undefined}
        aria-autocomplete="list"
        aria-activedescendant={at >= 0 && choices[at] ? `${id}-${at}` : undefined}
        aria-invalid={error ? true : undefined}
        aria-describedby={error ? `${id}-error` : undefined}
        placeholder={hidesLabel ? label : 'Name, or start of the id'}
        autocomplete="off"
        spellcheck={false}
        value={text ?? shown}
        onFocus={(event) => {
          setLeft(false)
          event.currentTarget.select()
        }}
        onClick={() => setOpen(true)}
        onInput={(event) => {
          setText(event.currentTarget.value)
          open(event.currentTarget.value === '' ? -1 : 0)
        }}
        onBlur={() => {
          if (text === '' && shown !== '') pick(undefined)
          else if (isOpen && text?.trim()) setLeft(true)
          else close()
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') open(Math.min(choices.length - 1, at + 1))
          else if (event.key === 'ArrowUp') open(Math.max(0, at - 1))
          else if (event.key === 'Escape' && isOpen) {
            // The page would handle the key as well, and close the panel around the field.
            event.stopPropagation()
            close()
          } else if (event.key === 'Enter') {
            if (text === '') pick(undefined)
            else if (isOpen) setAwaited(true)
          } else return
          event.preventDefault()
        }}
      />
      {isOpen && (
        <div class="pick-list">
          {choices.length > 0 && (
            // Tab would stop at a list that scrolls, and the focus would be lost with the list.
            <div role="listbox" id={`${id}-list`} aria-label={label} tabIndex={-1}>
              {choices.map((choice, index) => (
                // biome-ignore lint/a11y/useKeyWithClickEvents: keys are the field's
                // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
                <div
                  key={choice.id}
                  id={`${id}-${index}`}
                  role="option"
                  aria-selected={index === at}
                  onMouseDown={(event) => event.preventDefault()}
                  onClick={() => pick(choice)}
                >
                  <span class="name">{choice.name}</span>
                  <span class="small">{choice.more}</span>
                </div>
              ))}
            </div>
          )}
          {choices.length === 0 && (
            <p class="small" role="status">
              {found.refusal ? found.refusal.message : found.data ? 'Nothing has that name.' : '…'}
            </p>
          )}
          {found.data?.next && <p class="small">There are more: type a part of the name.</p>}
        </div>
      )}
      {error && (
        <p id={`${id}-error`} class="small bad" role="alert">
          {error}
        </p>
      )}
    </div>
  )
}

/** A filter of a list by one account. @param said the id or the name in the address */
export function PickAccount({ said }: { said: string | undefined }) {
  const account = useNamed<Account>('/accounts', said)
  return (
    <Pick<Account>
      label="Any account"
      hidesLabel
      shown={account ? account.name : (said ?? '')}
      pathOf={(q) => withQuery('/accounts', { q, sort: 'name', limit: 20 })}
      choiceOf={({ id, name }) => ({ id, name, more: id })}
      onPick={(choice) => setQuery({ account: choice?.id })}
    />
  )
}

/** Loads the object that a filter names by its id; undefined for a name or a wrong id, which is shown as it is. */
export function useNamed<T>(path: string, id: string | undefined): T | undefined {
  return useLoad<T>(id === undefined ? undefined : `${path}/${encodeURIComponent(id)}`).data
}
