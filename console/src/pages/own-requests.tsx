import { withQuery } from '../api/ask.ts'
import { useAgain, useList, useLoad, useSteady } from '../api/load.ts'
import { hrefOf, pageHref, place, setQuery } from '../location.ts'
import { inputOf } from '../pure/usage.ts'
import { creditName, me } from '../session.ts'
import type { LedPerson, Listed, OwnExplanation, OwnModel, OwnRequest } from '../shapes.ts'
import { Outcome, tellNoModel } from '../ui/badges.tsx'
import { Select } from '../ui/form.tsx'
import { Count, Credits, Ms, Time } from '../ui/numbers.tsx'
import { Failure, NoneFits, NotListed, Panel, Shown, Skeleton } from '../ui/states.tsx'
import { type Column, furtherOf, Table } from '../ui/table.tsx'
import { useBill } from './explain.tsx'
import { Fact } from './key-fields.tsx'
import { Chip } from './overview.tsx'
import { ExplainPanel, RequestSplit } from './request-frame.tsx'

/** The owner's own requests, each with the reason of its refusal. */
export function OwnRequests({ id }: { id: string | undefined }) {
  return (
    <RequestSplit
      id={id}
      list={<RequestList selected={id} />}
      explain={(one, close) => <OwnExplain id={one} key={one} close={close} />}
    />
  )
}

/** The first columns of a list of own requests. */
export const ownColumns: Column<OwnRequest>[] = [
  {
    head: 'Ended at',
    kind: 'fit',
    cell: ({ request_id, at }) => (
      <a href={rowHref(request_id)}>
        <Time iso={at} />
      </a>
    ),
  },
  { head: 'Ended', kind: 'fit', cell: ({ outcome, code }) => <Outcome outcome={outcome} code={code} /> },
  { head: 'Model', cell: ({ model, alias }) => model ?? alias ?? '–' },
  {
    head: 'Cost',
    get unit() {
      return creditName()
    },
    kind: 'number',
    cell: ({ credits }) => <Credits value={credits} />,
  },
]

const allColumns: Column<OwnRequest>[] = [
  ...ownColumns.slice(0, 3),
  { head: 'Key', wide: true, cell: ({ key }) => key?.label ?? key?.prefix ?? '–' },
  { head: 'In', unit: 'tokens', kind: 'number', wide: true, cell: (row) => <Count value={inputOf(row)} /> },
  {
    ...{ head: 'Out', unit: 'tokens', kind: 'number', wide: true },
    cell: ({ output_tokens }) => <Count value={output_tokens} />,
  },
  { head: 'Total', kind: 'number', wide: true, cell: ({ total_ms }) => <Ms value={total_ms} /> },
  ...ownColumns.slice(3),
]

const personColumn: Column<OwnRequest> = {
  ...{ head: 'Person', wide: true },
  cell: ({ person }) => person?.name ?? person?.id ?? '–',
}

export function rowHref(id: string): string {
  const { page, query } = place.value
  return hrefOf({ page: 'requests', id, query: page === 'requests' ? query : {} })
}

const endings = [
  ['', 'ended in any way'],
  ['refused', 'refused'],
  ['ok', 'ok'],
  ['upstream_error,upstream_cut,upstream_stall,internal_error,shutdown', 'failed'],
  ['client_abort,client_stall,client_timeout', 'ended by the client'],
] as const

const isLead = () => me.value?.role === 'lead'

/**
 * Makes the path of a list of requests.
 * @param whose for a lead only: `all` for the whole account, or the id of a person
 */
function listPath(whose: string | undefined, fields: Parameters<typeof withQuery>[1]): string {
  if (!isLead() || whose === undefined) return withQuery('/me/requests', fields)
  return withQuery('/me/people/requests', { ...fields, person: whose === 'all' ? undefined : whose })
}

/** A field with which a lead chooses whose requests are listed. */
function Whose({ said }: { said: string | undefined }) {
  const people = useLoad<Listed<LedPerson>>('/me/people')
  const named = (people.data?.items ?? []).map(({ id, name, email }) => [id, name ?? email ?? id] as const)
  return (
    <Select
      label="Whose"
      hidesLabel
      value={said ?? ''}
      options={[['', 'my own'], ['all', 'of all people'], ...named]}
      onChange={(next) => setQuery({ whose: next || undefined })}
    />
  )
}

function RequestList({ selected }: { selected: string | undefined }) {
  const { model, outcome, from, to, whose } = place.value.query
  const list = useList<OwnRequest>(listPath(whose, { model, outcome, from, to, limit: 50 }))
  useAgain(() => list.isLong || list.reload())
  // A listed request has the id of its model, also if it was asked for by another name.
  const models = useLoad<Listed<OwnModel>>('/me/models').data?.items ?? []
  return (
    <>
      <div class="filters">
        {isLead() && <Whose said={whose} />}
        <Select
          label="Model"
          hidesLabel
          value={model ?? ''}
          options={[['', 'any model'], ...models.map(({ id }) => [id, id] as const)]}
          onChange={(next) => setQuery({ model: next || undefined })}
        />
        <Select
          label="Ended"
          hidesLabel
          value={outcome ?? ''}
          options={endings}
          onChange={(next) => setQuery({ outcome: next || undefined })}
        />
        {from && to && <Chip text="a time" drop={() => setQuery({ from: undefined, to: undefined })} />}
      </div>
      <Shown of={list} height={36} lines={10}>
        {() =>
          !list.items || list.items.length === 0 ? (
            <NoneFits of={list} act={<a href={pageHref('setup')}>Set up an agent</a>}>
              {model || outcome || from
                ? 'No request fits.'
                : 'No request is listed yet. Requests are listed when they end.'}
            </NoneFits>
          ) : (
            <Table
              label="Requests"
              class="tight"
              rows={list.items}
              columns={
                isLead() && whose ? [...allColumns.slice(0, 3), personColumn, ...allColumns.slice(3)] : allColumns
              }
              keyOf={({ request_id }) => request_id}
              hrefOf={({ request_id }) => rowHref(request_id)}
              selected={selected}
              {...furtherOf(list)}
            />
          )
        }
      </Shown>
      <NotListed of={list} />
    </>
  )
}

function explainPath(id: string): string {
  return `/me${isLead() ? '/people' : ''}/requests/${encodeURIComponent(id)}/explain`
}

function OwnExplain({ id, close }: { id: string; close(): void }) {
  const told = useSteady<OwnExplanation>(explainPath(id))
  return (
    <ExplainPanel id={id} close={close}>
      <Shown of={told} height={120} lines={3}>
        {(one) => <OwnSteps of={one} />}
      </Shown>
    </ExplainPanel>
  )
}

function OwnSteps({ of: told }: { of: OwnExplanation }) {
  const { model, alias, outcome, status, code, message, param, why, cure } = told
  return (
    <ol class="steps">
      <li>
        <h3>Asked</h3>
        <dl class="facts">
          <Fact name="Model">
            {model ?? tellNoModel(code)}
            {alias && alias !== model && <span class="small"> asked for as {alias}</span>}
          </Fact>
        </dl>
      </li>
      <li>
        <h3>Ended</h3>
        <dl class="facts">
          <Fact name="Outcome">
            <Outcome outcome={outcome} />
          </Fact>
          {why && <Fact name="Why">{why}</Fact>}
          {cure && <Fact name="What to do">{cure}</Fact>}
          {status !== null && <Fact name="Status">{status}</Fact>}
          {code && (
            <Fact name="Code">
              <code>{code}</code>
            </Fact>
          )}
          {message && <Fact name="The client got">{message}</Fact>}
          {param && (
            <Fact name="Field">
              <code>{param}</code>
            </Fact>
          )}
        </dl>
      </li>
      <li>
        <h3>Billed</h3>
        <OwnBill of={told} />
      </li>
    </ol>
  )
}

const kinds = [
  ['input_tokens', 'Input'],
  ['cache_read_tokens', 'From cache'],
  ['cache_write_tokens', 'Into cache'],
  ['output_tokens', 'Output'],
  ['reasoning_tokens', 'Reasoning among it'],
] as const

function OwnBill({ of: { usage, credits } }: { of: Pick<OwnExplanation, 'usage' | 'credits'> }) {
  if (!usage && credits === null) return <p class="small">Nothing.</p>
  return (
    <dl class="facts">
      {usage &&
        kinds
          .filter(([name]) => usage[name] > 0)
          .map(([name, label]) => (
            <Fact key={name} name={label}>
              <Count value={usage[name]} /> tokens
            </Fact>
          ))}
      <Fact name="Credits">
        <Credits value={credits} />
      </Fact>
    </dl>
  )
}

/** Shows usage and cost of a request of the playground when they are settled. */
export function OwnCost({ id }: { id: string }) {
  const told = useBill<OwnExplanation>(explainPath(id), ({ state }) => state)
  return (
    <Panel title="Usage and cost">
      <div class="pad">
        {told.data ? (
          <>
            {told.data.why && (
              <p>
                {told.data.why} {told.data.cure}
              </p>
            )}
            <OwnBill of={told.data} />
          </>
        ) : told.refusal ? (
          <Failure refusal={told.refusal} retry={told.reload} />
        ) : (
          <Skeleton height={60} />
        )}
      </div>
    </Panel>
  )
}
