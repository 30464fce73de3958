import { useState } from 'preact/hooks'
import { create, edit, newOnce } from '../api/act.ts'
import { refresh } from '../api/load.ts'
import { tellCredits } from '../pure/format.ts'
import type { Account } from '../shapes.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Field, FormFoot, FormRefusal, useForm } from '../ui/form.tsx'
import { say } from '../ui/toasts.tsx'

type Props = { account: Account; close(): void }

const pathOf = ({ id }: Account) => `/accounts/${encodeURIComponent(id)}`

function refreshAccounts(): void {
  refresh('/accounts', '/ledger', '/audit')
}

export function CreditAccount({ account, close }: Props) {
  const [once] = useState(newOnce)
  const [credits, setCredits] = useState('')
  const [reference, setReference] = useState('')
  const { refusal, isBusy, errorOf, send } = useForm()
  return (
    <Dialog title={`Credit ${account.name}`} close={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault()
          const isDone = await send(async () => {
            const body = { credits: credits.trim(), reference: reference.trim() }
            const { body: now, status } = await create<Account>(`${pathOf(account)}/credits`, body, once)
            say(
              status === 201
                ? `Credited. The balance is ${tellCredits(now.balance)} credits.`
                : 'This reference was credited before: nothing was booked again.',
            )
          })
          if (!isDone) return
          refreshAccounts()
          close()
        }}
      >
        <Field
          label="Credits"
          name="credits"
          required
          autoFocus
          inputMode="decimal"
          placeholder="10"
          hint="such as 12.5, or -3 for a correction"
          value={credits}
          onInput={setCredits}
          error={errorOf('credits')}
        />
        <Field
          label="Reference"
          name="reference"
          required
          placeholder="invoice 2026-117"
          hint="number of the payment: the same one again is not booked again"
          value={reference}
          onInput={setReference}
          error={errorOf('reference')}
        />
        <FormRefusal refusal={refusal} fields={['credits', 'reference']} />
        <FormFoot close={close} isBusy={isBusy}>
          Credit
        </FormFoot>
      </form>
    </Dialog>
  )
}

export function RenameAccount({ account, version, close }: Props & { version: string | undefined }) {
  const [name, setName] = useState(account.name)
  const { refusal, isBusy, errorOf, send } = useForm()
  return (
    <Dialog title={`Rename ${account.name}`} close={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault()
          const isDone = await send(() => edit<Account>(pathOf(account), { name: name.trim() }, version))
          if (!isDone) return refreshAccounts()
          say('Renamed.')
          refreshAccounts()
          close()
        }}
      >
        <Field label="Name" name="name" required autoFocus value={name} onInput={setName} error={errorOf('name')} />
        <FormRefusal refusal={refusal} fields={['name']} />
        <FormFoot close={close} isBusy={isBusy}>
          Rename
        </FormFoot>
      </form>
    </Dialog>
  )
}

/** To suspend an account, the operator types its name, since all its requests will be refused. */
export function SuspendAccount({ account, version, close }: Props & { version: string | undefined }) {
  const [typed, setTyped] = useState('')
  const { refusal, isBusy, send } = useForm()
  const isSuspending = account.state === 'active'
  const verb = isSuspending ? 'Suspend' : 'Activate'
  return (
    <Dialog title={`${verb} ${account.name}`} close={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault()
          const state = isSuspending ? 'suspended' : 'active'
          const isDone = await send(() => edit<Account>(pathOf(account), { state }, version))
          refreshAccounts()
          if (!isDone) return
          say(`${account.name} is ${state}.`)
          close()
        }}
      >
        <p>
          {isSuspending
            ? 'Its requests will be refused; those that run are finished. Balance, keys and entries stay.'
            : 'Its keys work again.'}
        </p>
        {isSuspending && (
          <Field label={`Type ${account.name}`} name="confirm" required autoFocus value={typed} onInput={setTyped} />
        )}
        <FormRefusal refusal={refusal} />
        <FormFoot close={close} isBusy={isBusy || (isSuspending && typed !== account.name)} isDanger={isSuspending}>
          {verb}
        </FormFoot>
      </form>
    </Dialog>
  )
}
