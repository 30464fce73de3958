import { useState } from 'preact/hooks'
import { act, create, edit, newOnce } from '../api/act.ts'
import { refresh, useSteady } from '../api/load.ts'
import { pageHref, useSubject } from '../location.ts'
import type { IssuedKey, Key } from '../shapes.ts'
import { AdminOnly } from '../ui/admin-only.tsx'
import { Expires } from '../ui/badges.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Field, FormFoot, FormRefusal, Meanwhile, useConfirmed, useEdited, useForm } from '../ui/form.tsx'
import { Icon } from '../ui/icons.tsx'
import { Away, Time } from '../ui/numbers.tsx'
import { Panel, Shown } from '../ui/states.tsx'
import { say } from '../ui/toasts.tsx'
import { useFresh } from './figures.ts'
import { Fact, KeyFields, keyFields, keyLabels, LimitFacts, saidOf, spellLabels } from './key-fields.tsx'
import { Secret } from './secret.tsx'
import { SpendPlot } from './spend-plot.tsx'

/** The page of one key: its limits, its spending, and the actions on it. */
export function KeyPage({ id }: { id: string }) {
  const path = `/keys/${encodeURIComponent(id)}`
  const key = useSteady<Key>(path)
  useFresh(true, key.tookMs, path)
  return (
    <Shown of={key} height={84} lines={3}>
      {(one) => <KeyView of={one} version={key.version} />}
    </Shown>
  )
}

function KeyView({ of: key, version }: { of: Key; version: string | undefined }) {
  const [open, setOpen] = useState<'edit' | 'rotate' | 'revoke' | undefined>(undefined)
  const close = () => setOpen(undefined)
  useSubject(key.label ?? `${key.prefix}…`)
  return (
    <>
      <div class="page-head">
        <a class="back" href={pageHref('keys')}>
          <Icon name="back" /> Keys
        </a>
        <h2>{key.label ?? `${key.prefix}…`}</h2>
        <code class="small">{key.prefix}…</code>
        <a href={pageHref('accounts', key.account)}>{key.account_name ?? key.account}</a>
        <span class="spring" />
        <a class="button" href={pageHref('requests', undefined, { key: key.id })}>
          Requests
        </a>
        {!key.revoked && (
          <AdminOnly acts="edit, rotate and revoke keys">
            <button type="button" class="primary" onClick={() => setOpen('edit')}>
              Edit
            </button>
            <button type="button" onClick={() => setOpen('rotate')}>
              Rotate
            </button>
            <button type="button" onClick={() => setOpen('revoke')}>
              Revoke
            </button>
          </AdminOnly>
        )}
      </div>
      <Panel title="What it may">
        <dl class="facts">
          <LimitFacts of={key} />
          <Fact name="Models">{key.models ? key.models.join(', ') : 'all'}</Fact>
          <Fact name="Person">{key.person_name ?? key.person ?? 'nobody'}</Fact>
          <Fact name="Labels">{spellLabels(key.labels) ?? 'none'}</Fact>
          <Fact name="May choose">{key.may_choose?.join(', ') ?? 'no label'}</Fact>
          <Fact name="Expires">
            <Expires iso={key.expires} revoked={key.revoked} />
          </Fact>
          <Fact name="Made">
            <Time iso={key.created} />
          </Fact>
          <Fact name="Last used">
            <Away iso={key.last_used} none="never" />
          </Fact>
          <Fact name="Id">
            <code>{key.id}</code>
          </Fact>
        </dl>
      </Panel>
      <SpendPlot only={{ key: key.id }} usual="30d" />
      {open === 'edit' && <EditKey of={key} version={version} close={close} />}
      {open === 'rotate' && <RotateKey of={key} close={close} />}
      {open === 'revoke' && <RevokeKey of={key} close={close} />}
    </>
  )
}

type Props = { of: Key; close(): void }

function EditKey({ of: key, version: read, close }: Props & { version: string | undefined }) {
  const { said, setSaid, changes, version, meanwhile, meet } = useEdited({ of: key, version: read }, saidOf)
  const { refusal, isBusy, errorOf, send } = useForm()
  return (
    <Dialog title={`Edit ${key.label ?? key.prefix}`} close={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault()
          const path = `/keys/${encodeURIComponent(key.id)}`
          const isDone = await send(() => edit<Key>(path, changes, version).catch(meet))
          refresh('/keys', '/audit')
          if (!isDone) return
          say('Saved.')
          close()
        }}
      >
        <KeyFields
          said={said}
          setSaid={setSaid}
          errorOf={errorOf}
          expiresHint="30d from now, or a time; empty: never"
        />
        <Meanwhile of={meanwhile} labels={keyLabels} />
        <FormRefusal refusal={refusal} fields={keyFields} />
        <FormFoot close={close} isBusy={isBusy}>
          Save
        </FormFoot>
      </form>
    </Dialog>
  )
}

function RotateKey({ of: key, close }: Props) {
  const [once] = useState(newOnce)
  const [grace, setGrace] = useState('24h')
  const [made, setMade] = useState<IssuedKey | undefined>(undefined)
  const { refusal, isBusy, errorOf, send } = useForm()
  if (made)
    return (
      <Dialog title="Its successor" close={close} wide keeps={made.key !== undefined}>
        <Secret issued={made} close={close} />
      </Dialog>
    )
  return (
    <Dialog title={`Rotate ${key.label ?? key.prefix}`} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send(async () => {
            const { body } = await create<IssuedKey>(`/keys/${encodeURIComponent(key.id)}/rotate`, { grace }, once)
            refresh('/keys', '/audit')
            setMade(body)
          })
        }}
      >
        <p>A new key is made for the same account with the same limits; this one ends after the grace.</p>
        <Field
          label="Grace"
          name="grace"
          required
          autoFocus
          hint="such as 30m, 24h or 7d"
          value={grace}
          onInput={setGrace}
          error={errorOf('grace')}
        />
        <FormRefusal refusal={refusal} fields={['grace']} />
        <FormFoot close={close} isBusy={isBusy}>
          Rotate
        </FormFoot>
      </form>
    </Dialog>
  )
}

function RevokeKey({ of: key, close }: Props) {
  const name = key.label ?? key.prefix
  const { field, isBlocked } = useConfirmed(name)
  const { refusal, isBusy, send } = useForm()
  return (
    <Dialog title={`Revoke ${name}`} close={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault()
          const isDone = await send(() => act(`/keys/${encodeURIComponent(key.id)}/revoke`))
          if (!isDone) return
          refresh('/keys', '/audit')
          say('Revoked.')
          close()
        }}
      >
        <p>
          The key {key.prefix}… of {key.account_name ?? key.account} ends at once and for good. It was last used{' '}
          <Away iso={key.last_used} none="never" />. Requests with it will be refused, and this cannot be undone.
        </p>
        {field}
        <FormRefusal refusal={refusal} />
        <FormFoot close={close} isBusy={isBusy} isBlocked={isBlocked} isDanger>
          Revoke
        </FormFoot>
      </form>
    </Dialog>
  )
}
