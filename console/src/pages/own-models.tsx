import { useSteady } from '../api/load.ts'
import { hrefOf } from '../location.ts'
import type { Listed, OwnModel } from '../shapes.ts'
import { Count } from '../ui/numbers.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'

/** Lists the models that a key may name, for its owner; without prices (ruling Y22). */
export function OwnModels() {
  const told = useSteady<Listed<OwnModel>>('/me/models')
  return (
    <Shown of={told} height={36} lines={6}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty>This key may use no model.</Empty>
        ) : (
          <Table
            label="Models"
            rows={items}
            keyOf={({ id }) => id}
            columns={[
              { head: 'Model', by: ({ id }) => id, cell: ({ id }) => <code>{id}</code> },
              { head: 'Other names', wide: true, cell: ({ also }) => also.join(', ') },
              {
                ...{ head: 'Context', unit: 'tokens', kind: 'number', wide: true },
                cell: ({ context_window }) => <Count value={context_window} />,
              },
              {
                ...{ head: 'Output', unit: 'tokens', kind: 'number', wide: true },
                cell: ({ max_output_tokens }) => <Count value={max_output_tokens} />,
              },
              {
                head: 'Try',
                kind: 'fit',
                cell: ({ id }) => (
                  <>
                    <a href={hrefOf({ page: 'playground', query: { model: id } })} aria-label={`Try ${id}`}>
                      Try
                    </a>{' '}
                    <a href={hrefOf({ page: 'setup', query: { model: id } })} aria-label={`Set up an agent for ${id}`}>
                      Set up
                    </a>
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
