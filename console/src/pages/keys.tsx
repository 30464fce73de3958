import { useState } from 'preact/hooks'
import { withQuery } from '../api/ask.ts'
import { useList } from '../api/load.ts'
import { hrefOf, pageHref, place, setQuery } from '../location.ts'
import { readCredits } from '../pure/format.ts'
import { creditName } from '../session.ts'
import type { Key } from '../shapes.ts'
import { AdminOnly } from '../ui/admin-only.tsx'
import { BudgetBar, Expires } from '../ui/badges.tsx'
import { Select } from '../ui/form.tsx'
import { Icon } from '../ui/icons.tsx'
import { Away, Credits } from '../ui/numbers.tsx'
import { PickAccount } from '../ui/pick.tsx'
import { SearchField } from '../ui/search-field.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { type Column, furtherOf, Table } from '../ui/table.tsx'
import { useFresh } from './figures.ts'
import { KeyPage } from './key.tsx'
import { limitColumns } from './key-fields.tsx'
import { NewKey } from './new-key.tsx'
import { rowsAtOnce, useSpent } from './spent.tsx'

export function Keys({ id }: { id: string | undefined }) {
  return id === undefined ? <KeyList /> : <KeyPage id={id} key={id} />
}

function KeyList() {
  const [isNew, setNew] = useState(false)
  const { q, account, state, sort = 'created' } = place.value.query
  return (
    <>
      <div class="filters">
        <SearchField label="Start of the label or key" name="q" />
        <PickAccount said={account} />
        <Select
          label="State"
          hidesLabel
          value={state ?? ''}
          options={[
            ['', 'any state'],
            ['active', 'active'],
            ['expired', 'expired'],
            ['revoked', 'revoked'],
            ['suspended', 'account suspended'],
          ]}
          onChange={(next) => setQuery({ state: next || undefined })}
        />
        <Select
          label="Order"
          hidesLabel
          value={sort}
          options={[
            ['created', 'oldest first'],
            ['-created', 'newest first'],
            ['-spent', 'most spent, 30 d'],
          ]}
          onChange={(next) => setQuery({ sort: next === 'created' ? undefined : next })}
        />
        <span class="spring" />
        <AdminOnly acts="make keys">
          <button type="button" class="primary" onClick={() => setNew(true)}>
            <Icon name="plus" /> New key
          </button>
        </AdminOnly>
      </div>
      <KeyTable
        {...{ q, account, state, sort }}
        showsAccount
        empty={
          sort === '-spent'
            ? 'No key that has spent something fits.'
            : q || account || state
              ? 'No key fits.'
              : 'There is no key yet: an account gets one here.'
        }
      />
      {isNew && <NewKey close={() => setNew(false)} />}
    </>
  )
}

type Props = {
  account?: string | undefined
  q?: string | undefined
  state?: string | undefined
  sort?: string
  showsAccount?: boolean
  /** Whether the list is loaded again after events. */
  isFresh?: boolean
  empty: string
}

/** Lists keys by their first characters, with their limits and use. */
export function KeyTable({ account, q, state, sort, showsAccount, isFresh = false, empty }: Props) {
  const list = useList<Key>(withQuery('/keys', { account, q, state, sort, limit: rowsAtOnce }))
  useFresh(isFresh && !list.isLong, list.tookMs, '/keys')
  const [spentOf, asksSpent] = useSpent(
    'key',
    // The figures of a rotated key are under the id of the first key of its rotation.
    [...new Set((list.items ?? []).map(({ line }) => line))],
  )
  const columns: Column<Key>[] = [
    {
      head: 'Key',
      by: ({ label, prefix }) => label ?? prefix,
      cell: ({ id, label, prefix }) => (
        <>
          <a href={hrefOf({ page: 'keys', id })}>{label ?? `${prefix}…`}</a>
          {label && <code class="small"> {prefix}…</code>}
        </>
      ),
    },
    {
      head: 'Budget',
      unit: `spent and held, ${creditName()}`,
      by: ({ budget }) => budget && readCredits(budget.spent) + readCredits(budget.held),
      cell: ({ budget }) => <BudgetBar budget={budget} />,
    },
    {
      head: 'Spent',
      sorts: ['-spent'],
      by: ({ line }) => spentOf(line)?.credits,
      unit: `${creditName()}, 30 d`,
      kind: 'number',
      wide: true,
      cell: ({ line }) => <Credits value={spentOf(line)?.credits} />,
    },
    ...limitColumns,
    {
      head: 'Expires',
      by: ({ expires, revoked }) => revoked ?? expires,
      kind: 'fit',
      wide: true,
      cell: ({ expires, revoked }) => <Expires iso={expires} revoked={revoked} />,
    },
    {
      head: 'Last used',
      kind: 'fit',
      by: ({ last_used }) => last_used,
      cell: ({ last_used }) => <Away iso={last_used} none="never" />,
    },
  ]
  if (showsAccount)
    columns.splice(1, 0, {
      head: 'Account',
      by: ({ account, account_name }) => account_name ?? account,
      wide: true,
      cell: ({ account, account_name }) => <a href={pageHref('accounts', account)}>{account_name ?? account}</a>,
    })
  return (
    <>
      {asksSpent}
      <Shown of={list} height={36} lines={4}>
        {() =>
          list.items!.length === 0 ? (
            <Empty>{empty}</Empty>
          ) : (
            <Table
              label="Keys"
              class="dense"
              {...(sort !== undefined && { sort, onSort: (next?: string) => setQuery({ sort: next }) })}
              rows={list.items!}
              columns={columns}
              keyOf={({ id }) => id}
              hrefOf={({ id }) => hrefOf({ page: 'keys', id })}
              {...furtherOf(list)}
            />
          )
        }
      </Shown>
    </>
  )
}
