import { useSteady } from '../api/load.ts'
import { hrefOf } from '../location.ts'
import type { Me } from '../shapes.ts'
import { Empty, Shown } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'

/** Lists the models that a key may name, for its owner; without prices (ruling X14). */
export function OwnModels() {
  const told = useSteady<Me>('/me')
  return (
    <Shown of={told} height={36} lines={6}>
      {({ models }) =>
        !models || models.length === 0 ? (
          <Empty>This key can name no model.</Empty>
        ) : (
          <Table
            label="Models"
            rows={models}
            keyOf={(id) => id}
            columns={[
              { head: 'Model', by: (id) => id, cell: (id) => <code>{id}</code> },
              {
                head: 'Settings',
                kind: 'fit',
                cell: (id) => (
                  <a href={hrefOf({ page: 'setup', query: { model: id } })} aria-label={`Set up an agent for ${id}`}>
                    Set up
                  </a>
                ),
              },
            ]}
          />
        )
      }
    </Shown>
  )
}
