import { useState } from 'preact/hooks'
import { create, newOnce } from '../api/act.ts'
import { withQuery } from '../api/ask.ts'
import { refresh, useLoad } from '../api/load.ts'
import type { Account, IssuedKey, Listed } from '../shapes.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Field, FormFoot, FormRefusal, useForm } from '../ui/form.tsx'
import { KeyFields, type KeySaid, keyFields, nothingSaid } from './key-fields.tsx'
import { Secret } from './secret.tsx'

/** Creates a key and shows it. @param account the owner; if it is undefined, the form asks for it */
export function NewKey({ account, close }: { account?: Pick<Account, 'id' | 'name'>; close(): void }) {
  const [once] = useState(newOnce)
  const [owner, setOwner] = useState(account?.name ?? '')
  const [said, setSaid] = useState<KeySaid>(nothingSaid)
  const [made, setMade] = useState<IssuedKey | undefined>(undefined)
  const found = useLoad<Listed<Account>>(account ? undefined : withQuery('/accounts', { q: owner.trim(), limit: 8 }))
  const { refusal, isBusy, errorOf, send } = useForm()
  if (made)
    return (
      <Dialog title="A new key" close={close} wide keeps={made.key !== undefined}>
        <Secret issued={made} close={close} />
      </Dialog>
    )
  return (
    <Dialog title={account ? `New key of ${account.name}` : 'New key'} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send(make)
        }}
      >
        {!account && (
          <>
            <Field
              label="Account"
              name="account"
              required
              hint="by name or id"
              list="accounts-found"
              value={owner}
              onInput={setOwner}
              error={errorOf('account')}
            />
            <datalist id="accounts-found">
              {found.data?.items.map(({ id, name }) => (
                <option key={id} value={name} />
              ))}
            </datalist>
          </>
        )}
        <KeyFields said={said} setSaid={setSaid} errorOf={errorOf} expiresHint="such as 12h or 30d" />
        <FormRefusal refusal={refusal} fields={[...keyFields, 'account']} />
        <FormFoot close={close} isBusy={isBusy}>
          Make key
        </FormFoot>
      </form>
    </Dialog>
  )

  async function make(): Promise<void> {
    const whose = account?.id ?? owner.trim()
    const trimmed = Object.fromEntries(Object.entries(said).map(([name, value]) => [name, value.trim()]))
    const { body } = await create<IssuedKey>(`/accounts/${encodeURIComponent(whose)}/keys`, trimmed, once)
    refresh('/keys', '/accounts', '/audit')
    setMade(body)
  }
}
