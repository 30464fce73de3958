import { withQuery } from '../api/ask.ts'
import { useList } from '../api/load.ts'
import { place, setQuery } from '../location.ts'
import type { AuditRecord } from '../shapes.ts'
import { Time } from '../ui/numbers.tsx'
import { SearchField } from '../ui/search-field.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { furtherOf, Table } from '../ui/table.tsx'
import { Chip } from './overview.tsx'

/** The audit trail: each change, who made it and from which address. */
export function Audit() {
  const { actor, operation, object } = place.value.query
  const list = useList<AuditRecord>(withQuery('/audit', { actor, operation, object, limit: 100 }))
  return (
    <>
      <div class="filters">
        <SearchField label="Actor, such as operator:ann" name="actor" />
        <SearchField label="Operation, such as key.create" name="operation" />
        {object && <Chip text={`object ${object}`} drop={() => setQuery({ object: undefined })} />}
      </div>
      <Shown of={list} height={36} lines={8}>
        {() =>
          list.items!.length === 0 ? (
            <Empty>{actor || operation || object ? 'No record fits.' : 'Nothing was changed yet.'}</Empty>
          ) : (
            <Table
              label="Audit"
              rows={list.items!}
              keyOf={({ seq }) => String(seq)}
              {...furtherOf(list)}
              columns={[
                { head: 'No.', kind: 'number', wide: true, cell: ({ seq }) => seq },
                { head: 'At', kind: 'fit', cell: ({ at }) => <Time iso={at} /> },
                {
                  head: 'Who',
                  cell: ({ actor }) => (
                    <button type="button" class="link" onClick={() => setQuery({ actor })}>
                      {actor}
                    </button>
                  ),
                },
                { head: 'From', kind: 'code', wide: true, cell: ({ from }) => from ?? '–' },
                {
                  head: 'What',
                  cell: ({ operation }) => (
                    <button type="button" class="link" onClick={() => setQuery({ operation })}>
                      {operation}
                    </button>
                  ),
                },
                {
                  head: 'Of',
                  kind: 'code',
                  wide: true,
                  cell: ({ object }) => (
                    <button type="button" class="link" onClick={() => setQuery({ object })}>
                      {object}
                    </button>
                  ),
                },
                { head: 'Change', cell: ({ before, after }) => <Change before={before} after={after} /> },
              ]}
            />
          )
        }
      </Shown>
    </>
  )
}

function Change({ before, after }: Pick<AuditRecord, 'before' | 'after'>) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  const tell = (value: unknown) => (value === null || value === undefined ? 'none' : String(value))
  const parts = names.map((name) => {
    const was = before?.[name]
    return before && was !== undefined
      ? `${name} ${tell(was)} → ${tell(after?.[name])}`
      : `${name} ${tell(after?.[name])}`
  })
  const text = parts.join(', ')
  return <span title={text}>{text || '–'}</span>
}
