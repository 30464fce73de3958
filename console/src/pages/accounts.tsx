import { useSignal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { withQuery } from '../api/ask.ts'
import { useLive } from '../api/live.ts'
import { useList } from '../api/load.ts'
import { pageHref, place, setQuery } from '../location.ts'
import { Spark } from '../plot/spark.tsx'
import { readCredits } from '../pure/format.ts'
import { creditName, isAdmin } from '../session.ts'
import type { Account } from '../shapes.ts'
import { AdminOnly } from '../ui/admin-only.tsx'
import { AccountState } from '../ui/badges.tsx'
import { Select } from '../ui/form.tsx'
import { Icon } from '../ui/icons.tsx'
import { Credits } from '../ui/numbers.tsx'
import { SearchField } from '../ui/search-field.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { type Column, furtherOf, Table } from '../ui/table.tsx'
import { AccountPage } from './account.tsx'
import { useFresh } from './figures.ts'
import { NewAccount } from './new-account.tsx'
import { rowsAtOnce, useSpent } from './spent.tsx'

export function Accounts({ id }: { id: string | undefined }) {
  return id === undefined ? <AccountList /> : <AccountPage id={id} key={id} />
}

/** Puts changes into rows as they happen. @param atMs when the rows were loaded, with all changes before */
function useChanged(rows: readonly Account[], atMs: number): readonly Account[] {
  const changed = useSignal<ReadonlyMap<string, Partial<Account>>>(new Map())
  const [note] = useState(() => (now: Pick<Account, 'id'>) => {
    changed.value = new Map(changed.peek()).set(now.id, now)
  })
  useLive('account.changed', note)
  useEffect(() => {
    changed.value = new Map()
  }, [atMs])
  return rows.map((row) => ({ ...row, ...changed.value.get(row.id) }))
}

function AccountList() {
  const { query } = place.value
  const [isNew, setNew] = useState(query['new'] === '1')
  const { q, state, sort = '-created' } = query
  const list = useList<Account>(withQuery('/accounts', { q, state, sort, limit: rowsAtOnce }))
  const isBySpend = sort === '-spent'
  useFresh(!list.isLong, list.tookMs, '/accounts')
  const rows = useChanged(list.items ?? [], list.atMs)
  const [spentOf, asksSpent] = useSpent(
    'account',
    rows.map(({ id }) => id),
  )
  const columns: Column<Account>[] = [
    { head: 'Account', sorts: ['name'], cell: ({ id, name }) => <a href={pageHref('accounts', id)}>{name}</a> },
    { head: 'State', kind: 'fit', by: ({ state }) => state, cell: (account) => <AccountState {...account} /> },
    {
      head: 'Balance',
      unit: creditName(),
      kind: 'number',
      by: ({ balance }) => readCredits(balance),
      cell: ({ balance }) => <Credits value={balance} />,
    },
    {
      head: 'Held',
      unit: creditName(),
      kind: 'number',
      wide: true,
      by: ({ held }) => readCredits(held),
      cell: ({ held }) => <Credits value={held} />,
    },
    {
      head: 'Spent',
      unit: `${creditName()}, 30 d`,
      kind: 'number',
      sorts: ['-spent'],
      cell: ({ id }) => <Credits value={spentOf(id)?.credits} />,
    },
    {
      head: 'By day',
      unit: '30 d',
      kind: 'fit',
      wide: true,
      by: ({ id }) => spentOf(id)?.credits,
      cell: ({ id, name }) => <Spark values={spentOf(id)?.values ?? []} label={`Credits of ${name} by day`} />,
    },
    { head: 'Id', kind: 'code', wide: true, by: ({ id }) => id, cell: ({ id }) => id },
  ]
  return (
    <>
      <div class="filters">
        <SearchField label="Name, or start of the id" name="q" />
        <Select
          label="State"
          hidesLabel
          value={state ?? ''}
          options={[
            ['', 'any state'],
            ['active', 'active'],
            ['suspended', 'suspended'],
          ]}
          onChange={(next) => setQuery({ state: next || undefined })}
        />
        <Select
          label="Order"
          hidesLabel
          value={sort}
          options={[
            ['-created', 'newest first'],
            ['created', 'oldest first'],
            ['name', 'by name'],
            ['-spent', 'most spent, 30 d'],
          ]}
          onChange={(next) => setQuery({ sort: next === '-created' ? undefined : next })}
        />
        <span class="spring" />
        <AdminOnly acts="make accounts">
          <button type="button" class="primary" onClick={() => setNew(true)}>
            <Icon name="plus" /> New account
          </button>
        </AdminOnly>
      </div>
      {asksSpent}
      <Shown of={list} height={36} lines={8}>
        {() =>
          rows.length === 0 ? (
            <Empty
              act={
                isAdmin() &&
                !q && (
                  <button type="button" class="primary" onClick={() => setNew(true)}>
                    Make the first one
                  </button>
                )
              }
            >
              {q || state || isBySpend
                ? `No account ${isBySpend ? 'that has spent something ' : ''}fits.`
                : 'There is no account yet: every client of the gateway needs one, with a key.'}
            </Empty>
          ) : (
            <Table
              label="Accounts"
              sort={sort}
              onSort={(next) => setQuery({ sort: next })}
              rows={rows}
              columns={columns}
              keyOf={({ id }) => id}
              hrefOf={({ id }) => pageHref('accounts', id)}
              {...furtherOf(list)}
            />
          )
        }
      </Shown>
      {isNew && isAdmin() && (
        <NewAccount
          close={() => {
            setNew(false)
            if (query['new']) setQuery({ new: undefined }, 'replace')
          }}
        />
      )}
    </>
  )
}
