import { Field } from '../ui/form.tsx'

export type KeySaid = { label: string; budget: string; rpm: string; models: string; expires: string }
export const nothingSaid: KeySaid = { label: '', budget: '', rpm: '', models: '', expires: '' }
export const keyFields = Object.keys(nothingSaid)

/** The limits of a key as form fields, for a new key and for an existing one. */
export function KeyFields(props: {
  said: KeySaid
  setSaid(said: KeySaid): void
  errorOf(name: string): string | undefined
  modelsList?: string
  expiresHint: string
}) {
  const { said, setSaid, errorOf, modelsList, expiresHint } = props
  const field = (name: keyof KeySaid) => ({
    name,
    value: said[name],
    onInput: (value: string) => setSaid({ ...said, [name]: value }),
    error: errorOf(name),
  })
  return (
    <>
      <Field
        label="Label"
        autoFocus
        placeholder="ci"
        hint="what people call it; its successors keep it"
        {...field('label')}
      />
      <div class="fields">
        <Field label="Budget" placeholder="5/day" hint="credits: 5, 5/day, 20/week or 50/month" {...field('budget')} />
        <Field
          label="Requests per minute"
          inputMode="numeric"
          placeholder="60"
          hint="below what its account has"
          {...field('rpm')}
        />
      </div>
      <div class="fields">
        <Field
          label="Models"
          placeholder="all"
          hint="ids, or beginnings such as small-*, apart by commas"
          {...(modelsList === undefined ? {} : { list: modelsList })}
          {...field('models')}
        />
        <Field label="Expires" placeholder="never" hint={expiresHint} {...field('expires')} />
      </div>
    </>
  )
}
