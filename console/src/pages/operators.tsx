import { useState } from 'preact/hooks'
import { act, create, newOnce } from '../api/act.ts'
import { refresh, useSteady } from '../api/load.ts'
import { isAdmin, me } from '../session.ts'
import type { Listed, Operator } from '../shapes.ts'
import { AdminOnly } from '../ui/admin-only.tsx'
import { Expires } from '../ui/badges.tsx'
import { Copy } from '../ui/copy.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Field, FormFoot, FormRefusal, Select, useConfirmed, useForm } from '../ui/form.tsx'
import { Icon } from '../ui/icons.tsx'
import { Time } from '../ui/numbers.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'
import { say } from '../ui/toasts.tsx'

/** Lists the operators of the gateway. */
export function Operators() {
  const list = useSteady<Listed<Operator>>('/operators')
  const [isNew, setNew] = useState(false)
  const [revoked, setRevoked] = useState<Operator | undefined>(undefined)
  return (
    <>
      <div class="filters">
        <span class="spring" />
        <AdminOnly acts="make and revoke operators">
          <button type="button" class="primary" onClick={() => setNew(true)}>
            <Icon name="plus" /> New operator
          </button>
        </AdminOnly>
      </div>
      <Shown of={list} height={36} lines={4}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>No operator has a token yet.</Empty>
          ) : (
            <Table
              label="Operators"
              rows={items}
              keyOf={({ id }) => id}
              columns={[
                {
                  head: 'Name',
                  by: ({ name }) => name,
                  cell: ({ name }) => (
                    <>
                      {name}
                      {name === me.value?.name && <span class="small"> you</span>}
                    </>
                  ),
                },
                { head: 'Role', kind: 'fit', by: ({ role }) => role, cell: ({ role }) => role },
                {
                  head: 'Token',
                  kind: 'code',
                  wide: true,
                  by: ({ prefix }) => prefix,
                  cell: ({ prefix }) => `${prefix}…`,
                },
                {
                  head: 'Made',
                  kind: 'fit',
                  wide: true,
                  by: ({ created }) => created,
                  cell: ({ created }) => <Time iso={created} />,
                },
                {
                  head: 'Ends',
                  kind: 'fit',
                  by: ({ expires, revoked }) => revoked ?? expires,
                  cell: ({ expires, revoked }) => <Expires iso={expires} revoked={revoked} />,
                },
                {
                  head: 'Acts',
                  kind: 'fit',
                  cell: (operator) =>
                    isAdmin() && !operator.revoked ? (
                      <button
                        type="button"
                        class="small-button"
                        aria-label={`Revoke ${operator.name}`}
                        onClick={() => setRevoked(operator)}
                      >
                        Revoke
                      </button>
                    ) : (
                      ''
                    ),
                },
              ]}
            />
          )
        }
      </Shown>
      {isNew && <NewOperator close={() => setNew(false)} />}
      {revoked && <RevokeOperator of={revoked} close={() => setRevoked(undefined)} />}
    </>
  )
}

type Issued = { name: string; role: Operator['role']; token?: string; expires: string }

function NewOperator({ close }: { close(): void }) {
  const [once] = useState(newOnce)
  const [name, setName] = useState('')
  const [role, setRole] = useState<Operator['role']>('viewer')
  const [expires, setExpires] = useState('90d')
  const [made, setMade] = useState<Issued | undefined>(undefined)
  const { refusal, isBusy, errorOf, send } = useForm()
  if (made)
    return (
      <Dialog title={`${made.name} can sign in`} close={close} keeps={made.token !== undefined}>
        <p>This is the token. It is shown only once, because only its digest is stored.</p>
        <div class="secret">
          <code data-secret>{made.token ?? 'shown before'}</code>
          {made.token && <Copy text={made.token} label="Copy token" />}
        </div>
        <p class="small">
          It ends <Time iso={made.expires} />.
        </p>
        <div class="form-foot">
          <button type="button" class="primary" onClick={close}>
            I have it
          </button>
        </div>
      </Dialog>
    )
  return (
    <Dialog title="New operator" close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send(async () => {
            const { body } = await create<Issued>('/operators', { name: name.trim(), role, expires }, once)
            refresh('/operators', '/audit')
            setMade(body)
          })
        }}
      >
        <Field
          label="Name"
          name="name"
          required
          autoFocus
          hint="the name: letters, digits and . _ @ -"
          value={name}
          onInput={setName}
          error={errorOf('name')}
        />
        <div class="fields">
          <Select
            label="Role"
            value={role}
            options={[
              ['viewer', 'viewer: reads'],
              ['finance', 'finance: reads only sums, prices and statements'],
              ['admin', 'admin: changes too'],
            ]}
            onChange={(next) => setRole(next)}
          />
          <Field
            label="Good for"
            name="expires"
            required
            hint="such as 12h or 90d"
            value={expires}
            onInput={setExpires}
            error={errorOf('expires')}
          />
        </div>
        <FormRefusal refusal={refusal} fields={['name', 'expires']} />
        <FormFoot close={close} isBusy={isBusy}>
          Make token
        </FormFoot>
      </form>
    </Dialog>
  )
}

function RevokeOperator({ of: operator, close }: { of: Operator; close(): void }) {
  const { field, isBlocked } = useConfirmed(operator.name)
  const { refusal, isBusy, send } = useForm()
  return (
    <Dialog title={`Revoke ${operator.name}`} close={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault()
          if (!(await send(() => act(`/operators/${encodeURIComponent(operator.id)}/revoke`)))) return
          refresh('/operators', '/audit')
          say(`${operator.name} is signed out everywhere.`)
          close()
        }}
      >
        <p>The token and all sessions that were signed in with it end at once. This cannot be undone.</p>
        {field}
        <FormRefusal refusal={refusal} />
        <FormFoot close={close} isBusy={isBusy} isBlocked={isBlocked} isDanger>
          Revoke
        </FormFoot>
      </form>
    </Dialog>
  )
}
