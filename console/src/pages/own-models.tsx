import { useSteady } from '../api/load.ts'
import { hrefOf } from '../location.ts'
import { me } from '../session.ts'
import type { Listed, OwnModel } from '../shapes.ts'
import { Count } from '../ui/numbers.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'

/** Returns a name by which the key may use a model. Some keys may use only another name of it (ruling R15). */
function usableName({ id, also }: OwnModel): string {
  return me.value?.models?.includes(id) ? id : (also[0] ?? id)
}

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
                cell: (row) => {
                  const model = usableName(row)
                  return (
                    <>
                      <a href={hrefOf({ page: 'playground', query: { model } })} aria-label={`Try ${model}`}>
                        Try
                      </a>{' '}
                      <a href={hrefOf({ page: 'setup', query: { model } })} aria-label={`Set up an agent for ${model}`}>
                        Set up
                      </a>
                    </>
                  )
                },
              },
            ]}
          />
        )
      }
    </Shown>
  )
}
