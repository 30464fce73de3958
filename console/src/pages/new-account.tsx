import { useState } from 'preact/hooks'
import { create, newOnce } from '../api/act.ts'
import { refresh } from '../api/load.ts'
import { go, pageHref } from '../location.ts'
import type { Account, IssuedKey } from '../shapes.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Field, FormFoot, FormRefusal, useForm } from '../ui/form.tsx'
import { Secret } from './secret.tsx'

/** An account with its credit and its first key, in one form. */
export function NewAccount({ close }: { close(): void }) {
  const [once] = useState(newOnce)
  const [said, setSaid] = useState({ name: '', credit: '', label: '', budget: '' })
  const [made, setMade] = useState<{ account: Account; key: IssuedKey } | undefined>(undefined)
  const { refusal, isBusy, errorOf, send } = useForm()
  const field = (name: keyof typeof said) => ({
    name,
    value: said[name],
    onInput: (value: string) => setSaid({ ...said, [name]: value }),
    error: errorOf(name),
  })
  if (made)
    return (
      <Dialog title={`${made.account.name} can ask`} close={leave} wide>
        <Secret issued={made.key} close={leave} />
      </Dialog>
    )
  return (
    <Dialog title="New account" close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send(make)
        }}
      >
        <Field label="Name" required autoFocus hint="1 to 100 characters; it can be changed" {...field('name')} />
        <Field label="Credit" inputMode="decimal" placeholder="10" hint="what it starts with" {...field('credit')} />
        <div class="fields">
          <Field label="Label of its key" placeholder="laptop" {...field('label')} />
          <Field
            label="Budget of the key"
            placeholder="5/day"
            hint="5, 5/day, 20/week or 50/month"
            {...field('budget')}
          />
        </div>
        <FormRefusal refusal={refusal} fields={Object.keys(said)} />
        <FormFoot close={close} isBusy={isBusy}>
          Make account and key
        </FormFoot>
      </form>
    </Dialog>
  )

  async function make(): Promise<void> {
    const { name, credit, label, budget } = said
    const { body: account } = await create<Account>('/accounts', { name: name.trim(), credit: credit.trim() }, once)
    const path = `/accounts/${encodeURIComponent(account.id)}/keys`
    const { body: key } = await create<IssuedKey>(path, { label: label.trim(), budget: budget.trim() }, `${once}-key`)
    refresh('/accounts', '/keys')
    setMade({ account, key })
  }

  function leave(): void {
    const id = made?.account.id
    close()
    if (id) go(pageHref('accounts', id))
  }
}
