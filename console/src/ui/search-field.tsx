import { useEffect, useState } from 'preact/hooks'
import { place, setQuery } from '../location.ts'
import { searchOf, searchText } from '../pure/place.ts'
import { Icon } from './icons.tsx'

/** A search field whose text is in the address. The list changes when typing pauses. */
export function SearchField({ label, name }: { label: string; name: string }) {
  const said = place.value.query[name] ?? ''
  const [text, setText] = useState(said)
  useEffect(() => {
    const asked = searchOf(text)
    if (asked === said) return undefined
    const timer = window.setTimeout(() => setQuery({ [name]: asked || undefined }, 'replace'), 220)
    return () => window.clearTimeout(timer)
  }, [text])
  useEffect(() => setText((typed) => searchText(typed, said)), [said])
  return (
    <div class="search-field">
      <Icon name="search" />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={text}
        maxLength={100}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </div>
  )
}
