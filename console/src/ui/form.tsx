import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { Refusal } from '../api/ask.ts'

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
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  )
}

/** A form that sends one request, shows refusals beside their fields, and cannot be sent twice. */
export function useForm() {
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const errorOf = (name: string) => refusal?.errors.find(({ pointer }) => pointer === `/${name}`)?.detail
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

/** Shows the part of a refusal that belongs to no field. */
export function FormRefusal({ refusal, fields = [] }: { refusal: Refusal | undefined; fields?: readonly string[] }) {
  if (!refusal || refusal.errors.some(({ pointer }) => fields.includes(pointer.slice(1)))) return null
  return (
    <p class="bad" role="alert">
      {refusal.message} {refusal.requestId && <code class="small">{refusal.requestId}</code>}
    </p>
  )
}

/** The buttons at the end of a dialog's form: one closes it, the other sends it and is disabled while it is busy. */
export function FormFoot(props: { close(): void; isBusy: boolean; isDanger?: boolean; children: ComponentChildren }) {
  const { close, isBusy, isDanger = false, children } = props
  return (
    <div class="form-foot">
      <button type="button" onClick={close}>
        Cancel
      </button>
      <button type="submit" class={isDanger ? 'danger' : 'primary'} disabled={isBusy}>
        {children}
      </button>
    </div>
  )
}
