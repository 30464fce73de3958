import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { withQuery } from '../api/ask.ts'
import { useList, useSteady } from '../api/load.ts'
import { pageHref, useSubject } from '../location.ts'
import { lapseWords, limitLabels } from '../pure/account-limits.ts'
import { creditsOf } from '../pure/balance.ts'
import { exactCredits, readCredits, tellCredits, tellRequests, tellSpan } from '../pure/format.ts'
import { sumOf, sumOfCredits } from '../pure/usage.ts'
import { creditName } from '../session.ts'
import type { Account, AuditRecord, Entry, Listed, Usage } from '../shapes.ts'
import { AdminOnly } from '../ui/admin-only.tsx'
import { AccountState, BudgetBar } from '../ui/badges.tsx'
import { CsvButton } from '../ui/csv-button.tsx'
import { Icon } from '../ui/icons.tsx'
import { Count, Credits, Exact, Time } from '../ui/numbers.tsx'
import { Empty, NotListed, Panel, Shown } from '../ui/states.tsx'
import { furtherOf, Table } from '../ui/table.tsx'
import { CreditAccount, LimitAccount, RenameAccount, SuspendAccount } from './account-acts.tsx'
import { BalancePlot } from './balance-plot.tsx'
import { usagePath, useFresh, useRange } from './figures.ts'
import { Fact } from './key-fields.tsx'
import { KeyTable } from './keys.tsx'
import { NewKey } from './new-key.tsx'

/** One account: its balance over time, its keys and budgets, its entries. */
export function AccountPage({ id }: { id: string }) {
  const path = `/accounts/${encodeURIComponent(id)}`
  const account = useSteady<Account>(path)
  useFresh(true, account.tookMs, path, '/audit')
  return (
    <Shown of={account} height={84} lines={3}>
      {(one) => <AccountView account={one} version={account.version} />}
    </Shown>
  )
}

function AccountView({ account, version }: { account: Account; version: string | undefined }) {
  const { id } = account
  const range = useRange('30d')
  const path = usagePath({ range, measures: ['credits', 'requests'], only: { account: id } })
  const usage = useSteady<Usage>(path)
  const week = useSteady<Usage>(weekPath(id))
  const credited = useSteady<Listed<AuditRecord>>(
    withQuery('/audit', { operation: 'account.credit', object: id, limit: 200 }),
  )
  const granted = useSteady<Listed<AuditRecord>>(
    withQuery('/audit', { operation: 'account.grant', object: id, limit: 200 }),
  )
  const made = useSteady<Listed<AuditRecord>>(
    withQuery('/audit', { operation: 'account.create', object: id, limit: 1 }),
  )
  useFresh(true, usage.tookMs, '/usage')
  useSubject(account.name)
  const perDay = week.data ? sumOfCredits(week.data.total) / 7n : 0n
  const balance = readCredits(account.balance)
  return (
    <>
      <Head account={account} version={version} />
      <dl class="tiles">
        <Tile name="Balance" value={<Credits value={account.balance} />} more={creditName()} isBad={balance <= 0n} />
        <Tile name="Held by running requests" value={<Credits value={account.held} />} more={creditName()} />
        <Tile
          name={`Spent, ${range.label.toLowerCase()}`}
          value={<Credits value={usage.data ? sumOfCredits(usage.data.total) : undefined} />}
          more={usage.data ? `${creditName()}, ${tellRequests(sumOf(usage.data.total, 'requests'))}` : creditName()}
        />
        <Tile
          name="Lasts"
          value={
            !week.data ? '…' : perDay > 0n && balance > 0n ? tellSpan(Number((balance * 86_400_000n) / perDay)) : '–'
          }
          more={week.data ? `at ${tellCredits(perDay)} ${creditName()} a day, as of 7 days` : 'at the pace of 7 days'}
        />
      </dl>
      <Shown of={usage} height={262}>
        {(shown) => (
          <BalancePlot
            path={path}
            usage={shown}
            balance={account.balance}
            credits={creditsOf(made.data, credited.data, granted.data)}
            range={range}
          />
        )}
      </Shown>
      <Limits account={account} />
      <Keys account={account} />
      <Entries id={id} />
    </>
  )
}

function weekPath(id: string): string {
  const hour = 3_600_000
  const toMs = Math.ceil(Date.now() / hour) * hour
  const iso = (ms: number) => new Date(ms).toISOString()
  const range = { from: iso(toMs - 168 * hour), to: iso(toMs), bucket: 'all' as const }
  return usagePath({ range, measures: ['credits'], only: { account: id } })
}

function Tile(props: { name: string; value: ComponentChildren; more: ComponentChildren; isBad?: boolean }) {
  return (
    <div class="tile">
      <dt>{props.name}</dt>
      <dd class={props.isBad ? 'figure bad' : 'figure'}>{props.value}</dd>
      <dd class="change">{props.more}</dd>
    </div>
  )
}

function Head({ account, version }: { account: Account; version: string | undefined }) {
  const [open, setOpen] = useState<'credit' | 'limits' | 'rename' | 'suspend' | undefined>(undefined)
  const close = () => setOpen(undefined)
  const { id, name, state } = account
  return (
    <div class="page-head">
      <a class="back" href={pageHref('accounts')}>
        <Icon name="back" /> Accounts
      </a>
      <h2>{name}</h2>
      <AccountState {...account} />
      <code class="small">{id}</code>
      <span class="spring" />
      <a class="button" href={pageHref('requests', undefined, { account: id })}>
        Requests
      </a>
      <a class="button" href={pageHref('overview', undefined, { account: id })}>
        Figures
      </a>
      <AdminOnly acts="credit, limit, rename and suspend accounts">
        <button type="button" class="primary" onClick={() => setOpen('credit')}>
          Credit
        </button>
        <button type="button" onClick={() => setOpen('limits')}>
          Limits
        </button>
        <button type="button" onClick={() => setOpen('rename')}>
          Rename
        </button>
        <button type="button" onClick={() => setOpen('suspend')}>
          {state === 'active' ? 'Suspend' : 'Activate'}
        </button>
      </AdminOnly>
      {open === 'credit' && <CreditAccount account={account} close={close} />}
      {open === 'limits' && <LimitAccount account={account} version={version} close={close} />}
      {open === 'rename' && <RenameAccount account={account} version={version} close={close} />}
      {open === 'suspend' && <SuspendAccount account={account} version={version} close={close} />}
    </div>
  )
}

/** Shows the limits of an account, if it has any. */
function Limits({ account }: { account: Account }) {
  const { budget, rpm, warn, plan, grant } = account
  if (!budget && rpm == null && !warn && !plan && !grant) return null
  return (
    <Panel title="Limits" unit="for all keys together">
      <dl class="facts">
        {budget && (
          <Fact name={limitLabels.budget}>
            <BudgetBar budget={budget} />
          </Fact>
        )}
        {rpm != null && (
          <Fact name={limitLabels.rpm}>
            <Count value={rpm} />
          </Fact>
        )}
        {warn && <Fact name={limitLabels.warn}>{warn.map((level) => tellCredits(readCredits(level))).join(', ')}</Fact>}
        {plan && <Fact name={limitLabels.plan}>{plan}</Fact>}
        {grant && (
          <Fact name={limitLabels.grant}>
            <Credits value={grant.credits} />; unspent credit {lapseWords[grant.lapse ? 'lapses' : 'stays']}
          </Fact>
        )}
      </dl>
    </Panel>
  )
}

function Keys({ account }: { account: Account }) {
  const [isNew, setNew] = useState(false)
  return (
    <Panel
      title="Keys"
      tools={
        <AdminOnly acts="make keys">
          <button type="button" class="small-button" onClick={() => setNew(true)}>
            <Icon name="plus" /> New key
          </button>
        </AdminOnly>
      }
    >
      <KeyTable account={account.id} isFresh empty="The account has no key yet, so no client can use its credit." />
      {isNew && <NewKey account={account} close={() => setNew(false)} />}
    </Panel>
  )
}

function Entries({ id }: { id: string }) {
  const list = useList<Entry>(withQuery('/ledger', { account: id, limit: 50 }))
  useFresh(!list.isLong, list.tookMs, '/ledger')
  return (
    <Panel title="Entries" unit={`of the ledger, newest first; ${creditName()}`} tools={<LedgerCsv id={id} />}>
      <Shown of={list} height={36} lines={4}>
        {() =>
          list.items!.length === 0 ? (
            <Empty>There is no entry yet: the first credit or request makes one.</Empty>
          ) : (
            <Table
              label="Entries"
              rows={list.items!}
              keyOf={({ seq }) => String(seq)}
              {...furtherOf(list)}
              columns={[
                { head: 'Posted', kind: 'fit', by: ({ seq }) => seq, cell: ({ posted }) => <Time iso={posted} /> },
                {
                  head: 'What',
                  by: ({ kind, model }) => model ?? kind,
                  cell: ({ kind, reference, request_id, model }) =>
                    kind === 'debit' && request_id ? (
                      <a href={pageHref('requests', request_id)}>{model ?? request_id}</a>
                    ) : (
                      <span>
                        {kind} <span class="small">{reference}</span>
                      </span>
                    ),
                },
                {
                  head: 'Key',
                  wide: true,
                  by: ({ key_label, key_prefix }) => key_label ?? key_prefix,
                  cell: ({ key_label, key_prefix }) => key_label ?? key_prefix ?? '–',
                },
                {
                  head: 'Amount',
                  by: changeOf,
                  kind: 'number',
                  cell: (entry) => <Change nanos={changeOf(entry)} />,
                },
                {
                  head: 'Balance',
                  kind: 'number',
                  by: ({ balance_after }) => readCredits(balance_after),
                  cell: ({ balance_after }) => <Exact value={balance_after} />,
                },
              ]}
            />
          )
        }
      </Shown>
      <NotListed of={list} />
    </Panel>
  )
}

/** Returns by how much an entry changes the balance. A credit is negative if it is a correction or an expired grant. */
function changeOf({ kind, amount }: Entry): bigint {
  return (kind === 'debit' ? -1n : 1n) * readCredits(amount)
}

function Change({ nanos }: { nanos: bigint }) {
  return (
    <span class={nanos > 0n ? 'good' : undefined}>
      {nanos > 0n && '+'}
      <Exact value={exactCredits(nanos)} />
    </span>
  )
}

function LedgerCsv({ id }: { id: string }) {
  return <CsvButton path={withQuery('/ledger', { account: id })} name={`ledger-${id}.csv`} />
}
