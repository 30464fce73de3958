import { useState } from 'preact/hooks'
import { act } from '../api/act.ts'
import { refresh, useSteady } from '../api/load.ts'
import { lookWhoAsks } from '../session.ts'
import type { Listed, OwnSession } from '../shapes.ts'
import { Expires } from '../ui/badges.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { FormFoot, FormRefusal, useForm } from '../ui/form.tsx'
import { Away, Time } from '../ui/numbers.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'
import { say } from '../ui/toasts.tsx'

const nameOf = ({ agent }: OwnSession) => (agent ?? 'a program').replaceAll('_', ' ')

/** Lists where a person is signed in. Each session can be ended. */
export function Sessions() {
  const told = useSteady<Listed<OwnSession>>('/me/sessions')
  const [ending, setEnding] = useState<OwnSession | undefined>(undefined)
  return (
    <>
      <Shown of={told} height={36} lines={4}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>You are signed in nowhere else. Programs that you sign in to are listed here.</Empty>
          ) : (
            <Table
              label="Sessions"
              rows={items}
              keyOf={({ id }) => id}
              columns={[
                {
                  head: 'Program',
                  cell: (one) => (
                    <>
                      {nameOf(one)} {one.is_this && <span class="small">this one</span>}
                    </>
                  ),
                },
                { head: 'From', wide: true, cell: ({ address }) => address ?? '–' },
                { head: 'Since', kind: 'fit', wide: true, cell: ({ created }) => <Time iso={created} /> },
                {
                  head: 'Last used',
                  kind: 'fit',
                  cell: ({ last_used, is_this }) => <Away iso={last_used} none={is_this ? 'now' : 'never'} />,
                },
                { head: 'Ends', kind: 'fit', wide: true, cell: ({ expires }) => <Expires iso={expires} /> },
                {
                  head: 'Acts',
                  kind: 'fit',
                  cell: (one) => (
                    <button
                      type="button"
                      class="small-button"
                      aria-label={`End the session of ${nameOf(one)}`}
                      onClick={() => setEnding(one)}
                    >
                      End
                    </button>
                  ),
                },
              ]}
            />
          )
        }
      </Shown>
      {ending && <EndSession of={ending} close={() => setEnding(undefined)} />}
    </>
  )
}

function EndSession({ of: session, close }: { of: OwnSession; close(): void }) {
  const { refusal, isBusy, send } = useForm()
  return (
    <Dialog title={`End the session of ${nameOf(session)}`} close={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault()
          if (!(await send(() => act(`/me/sessions/${encodeURIComponent(session.id)}/end`)))) return
          close()
          say(`${nameOf(session)} is signed out.`)
          refresh('/me/sessions')
          // This page may belong to the session that was ended.
          if (session.is_this) void lookWhoAsks()
        }}
      >
        <p>
          {session.is_this ? 'You are signed out here. ' : ''}The program must be signed in again before it sends
          anything more. What it used stays in your requests.
        </p>
        <FormRefusal refusal={refusal} />
        <FormFoot close={close} isBusy={isBusy}>
          End session
        </FormFoot>
      </form>
    </Dialog>
  )
}
