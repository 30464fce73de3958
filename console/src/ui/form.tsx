import type { ComponentChildren } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import { Refusal } from '../api/ask.ts'
import { withChosen } from '../pure/options.ts'
import { Words } from './words.tsx'

type FieldProps = {
  label: string
  name: string
  hint?: ComponentChildren
  value: string
  onInput(value: string): void
  error?: string | undefined
  required?: boolean
  autoFocus?: boolean
  /** The value is given and cannot be changed here. */
  readOnly?: boolean
  placeholder?: string
  inputMode?: 'decimal' | 'numeric' | 'text'
  list?: string
}

export function Field(props: FieldProps) {
  const { label, name, hint, value, onInput, error, required, autoFocus, readOnly, placeholder, inputMode, list } =
    props
  const id = useId()
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label for={id}>
        {label}
        {!required && <span class="unit"> optional</span>}
      </label>
      <input
        id={id}
        name={name}
        value={value}
        required={required}
        // biome-ignore lint/a11y/noAutofocus: the first field of a dialog that was asked for
        autoFocus={autoFocus}
        readOnly={readOnly}
        placeholder={placeholder}
        inputMode={inputMode}
        list={list}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={error ? true : undefined}
        aria-describedby={described || undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {hint && (
        <p id={`${id}-hint`} class="small">
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} class="small bad">
          {error}
        </p>
      )}
    </div>
  )
}

export function Select<T extends string>(props: {
  label: string
  value: T
  options: readonly (readonly [value: T, label: string])[]
  onChange(value: T): void
  hidesLabel?: boolean
}) {
  const { label, value, options, onChange, hidesLabel } = props
  const id = useId()
  return (
    <div class={hidesLabel ? 'select' : 'field'}>
      <label for={id} class={hidesLabel ? 'offscreen' : undefined}>
        {label}
      </label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {withChosen(options, value).map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  )
}

/** A field in which people type the name of an object before an action that cannot be undone (CON-15). */
export function useConfirmed(name: string) {
  const [typed, setTyped] = useState('')
  const field = <Field label={`Type ${name}`} name="confirm" required autoFocus value={typed} onInput={setTyped} />
  return { field, isBlocked: readable(typed) !== readable(name) }
}

/** A name as people see and type it: a browser shows several blanks as one, and both forms of an accent alike. */
const readable = (name: string) => name.normalize().replaceAll(/\s+/g, ' ').trim()

/** A form that sends one request, shows refusals beside their fields, and cannot be sent twice. */
export function useForm() {
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const errorOf = (name: string) => refusal?.errors.find(({ pointer }) => pointer === `/${name}`)?.detail
  useEffect(() => {
    if (refusal) document.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [refusal])
  return { refusal, isBusy, errorOf, send }

  /** @returns whether the request succeeded */
  async function send(act: () => Promise<unknown>): Promise<boolean> {
    if (isBusy) return false
    setBusy(true)
    try {
      await act()
      setRefusal(undefined)
      return true
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      setRefusal(error)
      return false
    } finally {
      setBusy(false)
    }
  }
}

type Texts = Readonly<Record<string, string>>

/**
 * The fields of an object while they are edited. They are compared with the values at the time when the form was
 * opened, so that only edited fields are sent. After a 412 the form takes over the fields that someone else has changed
 * and that are not edited here. `meanwhile` then has the old and the new value of each field that they changed (CON-2).
 */
export function useEdited<T, Said extends Texts>(read: { of: T; version: string | undefined }, tell: (one: T) => Said) {
  const [base, setBase] = useState(() => ({ said: tell(read.of), version: read.version }))
  const [said, setSaid] = useState<Said>(base.said)
  const [meanwhile, setMeanwhile] = useState<readonly OthersValue[] | undefined>(undefined)
  const names = Object.keys(said)
  const edited = names.filter((name) => said[name] !== base.said[name])
  /** An emptied field becomes null, which removes the value. */
  const changes = Object.fromEntries(edited.map((name) => [name, said[name]!.trim() || null]))
  return { said, setSaid, changes, version: base.version, meanwhile, meet }

  /** Takes over the fields that a refusal shows as changed. @throws the same refusal, for the form */
  function meet(error: unknown): never {
    if (error instanceof Refusal && error.current !== undefined) {
      const now = tell(error.current as T)
      const theirs = names.filter((name) => now[name] !== base.said[name])
      setMeanwhile(theirs.map((name) => ({ name, now: now[name]!, before: base.said[name]! })))
      setSaid({ ...now, ...Object.fromEntries(edited.map((name) => [name, said[name]])) })
      setBase({ said: now, version: error.version })
    }
    throw error
  }
}

type OthersValue = { name: string; now: string; before: string }

/**
 * Shows the fields that someone else has changed while the form was open.
 * @param labels of the fields, by their names
 */
export function Meanwhile({ of: changed, labels }: { of: readonly OthersValue[] | undefined; labels: Texts }) {
  if (changed === undefined) return null
  return (
    <div class="meanwhile" role="alert">
      <p>
        Someone else has changed this meanwhile. Your changes are not saved yet
        {changed.length > 0 ? ':' : '. This form has no field for what they changed.'}
      </p>
      {changed.length > 0 && (
        <ul>
          {changed.map(({ name, now, before }) => (
            <li key={name}>
              {labels[name] ?? name}: <strong>{now || 'empty'}</strong>, was {before || 'empty'}
            </li>
          ))}
        </ul>
      )}
      <p>Your changes are still in the form. Sending it again sends only them.</p>
    </div>
  )
}

/** Shows the part of a refusal that belongs to no field. */
export function FormRefusal({ refusal, fields = [] }: { refusal: Refusal | undefined; fields?: readonly string[] }) {
  if (!refusal || refusal.current !== undefined) return null
  if (refusal.errors.some(({ pointer }) => fields.includes(pointer.slice(1)))) return null
  return (
    <p class="bad" role="alert">
      <Words text={refusal.message} /> {refusal.requestId && <code class="small">{refusal.requestId}</code>}
    </p>
  )
}

type FootProps = {
  close(): void
  isBusy: boolean
  isDanger?: boolean
  /** Whether the form cannot be sent as it is. */
  isBlocked?: boolean
  children: ComponentChildren
}

/** The buttons at the end of a dialog's form: one closes it, the other sends it. A busy one keeps the focus (CON-7). */
export function FormFoot({ close, isBusy, isDanger = false, isBlocked = false, children }: FootProps) {
  return (
    <div class="form-foot">
      <button type="button" onClick={close}>
        Cancel
      </button>
      <button type="submit" class={isDanger ? 'danger' : 'primary'} disabled={isBlocked} aria-disabled={isBusy}>
        {children}
      </button>
    </div>
  )
}
