import { refresh, useAgain, useSteady } from '../api/load.ts'
import { readCredits } from '../pure/format.ts'
import { tellEvents } from '../pure/webhook-events.ts'
import { creditName } from '../session.ts'
import type { Listed, WebhookRow } from '../shapes.ts'
import { Icon } from '../ui/icons.tsx'
import { Away, Count, Credits } from '../ui/numbers.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'

/** The time between two loads of the list, in ms, for which there are no events. */
const everyMs = 5_000

/** Lists the receivers of webhooks, what they are sent, and how the deliveries went. */
export function Webhooks() {
  const list = useSteady<Listed<WebhookRow>>('/webhooks')
  useAgain(() => refresh('/webhooks'), everyMs)
  return (
    <Shown of={list} height={36} lines={3}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty>
            There is no receiver: <code>webhooks</code> in the configuration lists the receivers of warnings about low
            credit, spent budgets, and upstreams or a ledger in trouble.
          </Empty>
        ) : (
          <Table
            label="Webhooks"
            class="dense"
            rows={items}
            keyOf={(_, at) => String(at)}
            columns={[
              { head: 'Where', kind: 'code', by: ({ url }) => url, cell: ({ url }) => url },
              {
                head: 'Told of',
                wide: true,
                by: ({ events }) => events.join(),
                cell: ({ events }) => <Events of={events} />,
              },
              {
                head: 'Below',
                unit: creditName(),
                kind: 'number',
                wide: true,
                by: ({ below }) => below && readCredits(below),
                cell: ({ below }) => (below === null ? <span class="none">–</span> : <Credits value={below} />),
              },
              { head: 'Last one', kind: 'fit', by: ({ last }) => last?.at, cell: ({ last }) => <Told last={last} /> },
              {
                head: 'Wait',
                unit: 'told again',
                kind: 'number',
                by: ({ pending }) => pending,
                cell: ({ pending }) => <Count value={pending} />,
              },
              {
                head: 'Told',
                by: ({ told }) => told,
                unit: 'since start',
                kind: 'number',
                wide: true,
                cell: ({ told }) => <Count value={told} />,
              },
              {
                head: 'Failed',
                by: ({ failed }) => failed,
                unit: 'since start',
                kind: 'number',
                wide: true,
                cell: ({ failed, last_failure: failure }) => (
                  <>
                    <Count value={failed} />
                    {failure && (
                      <span class="small">
                        {' '}
                        {wordsOf(failure)} <Away iso={failure.at} />
                      </span>
                    )}
                  </>
                ),
              },
            ]}
          />
        )
      }
    </Shown>
  )
}

const resultWords: Readonly<Record<string, string>> = {
  redirected: 'redirected',
  refused: 'refused (4xx)',
  gone: 'gone (410)',
  failed: 'failed (5xx)',
  timeout: 'no answer in time',
  unreachable: 'not reached',
}

function Events({ of: events }: { of: WebhookRow['events'] }) {
  const { short, all } = tellEvents(events)
  return <span title={all}>{short}</span>
}

type Telling = NonNullable<WebhookRow['last']>

function wordsOf({ result }: Telling): string {
  return resultWords[result] ?? result
}

function Told({ last }: { last: Telling | null }) {
  if (!last) return <span class="state muted">nothing yet</span>
  const isTold = last.result === 'ok'
  return (
    <span class={`state ${isTold ? 'good' : 'bad'}`}>
      <Icon name={isTold ? 'ready' : 'trouble'} /> {isTold ? 'told' : wordsOf(last)} <Away iso={last.at} />
    </span>
  )
}
