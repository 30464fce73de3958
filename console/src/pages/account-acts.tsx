import { useState } from 'preact/hooks'
import { create, edit, newOnce } from '../api/act.ts'
import { refresh } from '../api/load.ts'
import { type LimitTexts, lapseWords, limitChanges, limitLabels, limitTexts } from '../pure/account-limits.ts'
import { tellCredits } from '../pure/format.ts'
import { creditName } from '../session.ts'
import type { Account } from '../shapes.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Field, FormFoot, FormRefusal, Meanwhile, Select, useEdited, useForm } from '../ui/form.tsx'
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
                ? `Credited. The balance is ${tellCredits(now.balance)} ${creditName()}.`
                : 'This reference was credited before, so nothing was posted.',
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
          hint="such as 12.5, or -3 as a correction"
          value={credits}
          onInput={setCredits}
          error={errorOf('credits')}
        />
        <Field
          label="Reference"
          name="reference"
          required
          placeholder="invoice 2026-117"
          hint="number of the payment; the same reference is posted only once"
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

type EditProps = Props & { version: string | undefined }

const labels = { name: 'Name', state: 'State' }
const saidOf = ({ name, state }: Account) => ({ name, state })

export function RenameAccount({ account, version: read, close }: EditProps) {
  const { said, setSaid, changes, version, meanwhile, meet } = useEdited({ of: account, version: read }, saidOf)
  const { refusal, isBusy, errorOf, send } = useForm()
  return (
    <Dialog title={`Rename ${account.name}`} close={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault()
          const { name = account.name } = changes
          const isDone = await send(() => edit<Account>(pathOf(account), { name }, version).catch(meet))
          refreshAccounts()
          if (!isDone) return
          say('Renamed.')
          close()
        }}
      >
        <Field
          label="Name"
          name="name"
          required
          autoFocus
          value={said.name}
          onInput={(name) => setSaid({ ...said, name })}
          error={errorOf('name')}
        />
        <Meanwhile of={meanwhile} labels={labels} />
        <FormRefusal refusal={refusal} fields={['name']} />
        <FormFoot close={close} isBusy={isBusy}>
          Rename
        </FormFoot>
      </form>
    </Dialog>
  )
}

/** A form for the bounds of an account over all its keys, and for its monthly grant. */
export function LimitAccount({ account, version: read, close }: EditProps) {
  const { said, setSaid, changes, version, meanwhile, meet } = useEdited({ of: account, version: read }, limitTexts)
  const { refusal, isBusy, errorOf, send } = useForm()
  const field = (name: keyof LimitTexts) => ({
    name,
    label: limitLabels[name],
    value: said[name],
    onInput: (value: string) => setSaid({ ...said, [name]: value }),
    error: errorOf(name),
  })
  return (
    <Dialog title={`Limits of ${account.name}`} close={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault()
          const body = limitChanges(changes, said)
          const isDone = await send(() => edit<Account>(pathOf(account), body, version).catch(meet))
          refreshAccounts()
          if (!isDone) return
          say('Saved.')
          close()
        }}
      >
        <div class="fields">
          <Field
            autoFocus
            placeholder="500/month"
            hint="for all keys together, such as 5, 5/day or 20/week"
            {...field('budget')}
          />
          <Field inputMode="numeric" placeholder="300" hint="for all keys together" {...field('rpm')} />
        </div>
        <div class="fields">
          <Field
            placeholder="50,10"
            hint="balances at which to warn, in place of the configured ones"
            {...field('warn')}
          />
          <Field placeholder="gold" hint="name of a configured plan" {...field('plan')} />
        </div>
        <div class="fields">
          <Field placeholder="100/month" hint="credit that the account gets each month" {...field('grant')} />
          <Select
            label={limitLabels.lapse}
            value={said.lapse as keyof typeof lapseWords}
            options={Object.entries(lapseWords) as [keyof typeof lapseWords, string][]}
            onChange={(lapse) => setSaid({ ...said, lapse })}
          />
        </div>
        <Meanwhile of={meanwhile} labels={limitLabels} />
        <FormRefusal refusal={refusal} fields={Object.keys(limitLabels)} />
        <FormFoot close={close} isBusy={isBusy}>
          Save
        </FormFoot>
      </form>
    </Dialog>
  )
}

/** Suspends an account, or activates it again. This can be undone, so one press is enough (CON-15). */
export function SuspendAccount({ account, version: read, close }: EditProps) {
  const [state] = useState(account.state === 'active' ? ('suspended' as const) : ('active' as const))
  const { said, version, meanwhile, meet } = useEdited({ of: account, version: read }, saidOf)
  const { refusal, isBusy, send } = useForm()
  const isSuspending = state === 'suspended'
  const verb = isSuspending ? 'Suspend' : 'Activate'
  return (
    <Dialog title={`${verb} ${account.name}`} close={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault()
          const isDone = await send(() => edit<Account>(pathOf(account), { state }, version).catch(meet))
          refreshAccounts()
          if (!isDone) return
          say(`${account.name} is ${state}.`)
          close()
        }}
      >
        <p>
          {isSuspending
            ? 'New requests of the account will be refused until it is activated again. Running requests continue to their end. Balance, keys and entries are kept.'
            : 'The keys of the account will work again.'}
        </p>
        <Meanwhile of={meanwhile} labels={labels} />
        <FormRefusal refusal={refusal} />
        <FormFoot close={close} isBusy={isBusy} isBlocked={said.state === state} isDanger={isSuspending}>
          {verb}
        </FormFoot>
      </form>
    </Dialog>
  )
}
