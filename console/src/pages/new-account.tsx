import { useState } from 'preact/hooks'
import { create, newOnce } from '../api/act.ts'
import { refuseFields } from '../api/ask.ts'
import { refresh } from '../api/load.ts'
import { go, pageHref } from '../location.ts'
import { findKeyFaults } from '../pure/first-key.ts'
import { creditName } from '../session.ts'
import type { Account, IssuedKey } from '../shapes.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Field, FormFoot, FormRefusal, useForm } from '../ui/form.tsx'
import { Secret } from './secret.tsx'

/** A form that creates an account with credit and a first key. If the key is refused, it says so: the account stays. */
export function NewAccount({ close }: { close(): void }) {
  const [once] = useState(newOnce)
  const [said, setSaid] = useState({ name: '', credit: '', label: '', budget: '' })
  const [account, setAccount] = useState<Account | undefined>(undefined)
  const [issued, setIssued] = useState<IssuedKey | undefined>(undefined)
  const isMade = account !== undefined
  const { refusal, isBusy, errorOf, send } = useForm()
  const field = (name: keyof typeof said) => ({
    name,
    value: said[name],
    onInput: (value: string) => setSaid({ ...said, [name]: value }),
    error: errorOf(name),
  })
  if (account && issued)
    return (
      <Dialog title={`${account.name} can ask`} close={leave} wide keeps={issued.key !== undefined}>
        <Secret issued={issued} close={leave} />
      </Dialog>
    )
  return (
    <Dialog title="New account" close={leave}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send(make)
        }}
      >
        <Field
          label="Name"
          required
          autoFocus
          hint="1 to 100 characters; it can be changed"
          readOnly={isMade}
          {...field('name')}
        />
        <Field
          label="Credit"
          inputMode="decimal"
          placeholder="10"
          hint={`${creditName()} at the start`}
          readOnly={isMade}
          {...field('credit')}
        />
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
        {account && (
          <p role="status">
            {account.name} is made{said.credit.trim() && ' and has its credit'}; only its key is missing.
          </p>
        )}
        <FormFoot close={leave} isBusy={isBusy}>
          {isMade ? 'Make its key' : 'Make account and key'}
        </FormFoot>
      </form>
    </Dialog>
  )

  async function make(): Promise<void> {
    refuseFields(findKeyFaults(said))
    const { id } = account ?? (await makeAccount())
    const { label, budget } = said
    const path = `/accounts/${encodeURIComponent(id)}/keys`
    const { body } = await create<IssuedKey>(path, { label: label.trim(), budget: budget.trim() }, `${once}-key`)
    refresh('/keys')
    setIssued(body)
  }

  async function makeAccount(): Promise<Account> {
    const { name, credit } = said
    const { body } = await create<Account>('/accounts', { name: name.trim(), credit: credit.trim() }, once)
    refresh('/accounts')
    setAccount(body)
    return body
  }

  function leave(): void {
    close()
    if (account) go(pageHref('accounts', account.id))
  }
}
