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
                { head: 'No.', kind: 'number', wide: true, by: ({ seq }) => seq, cell: ({ seq }) => seq },
                { head: 'At', kind: 'fit', by: ({ at }) => at, cell: ({ at }) => <Time iso={at} /> },
                {
                  head: 'Who',
                  by: ({ actor }) => actor,
                  cell: ({ actor }) => (
                    <button type="button" class="link" onClick={() => setQuery({ actor })}>
                      {actor}
                    </button>
                  ),
                },
                { head: 'From', kind: 'code', wide: true, by: ({ from }) => from, cell: ({ from }) => from ?? '–' },
                {
                  head: 'What',
                  by: ({ operation }) => operation,
                  cell: ({ operation }) => (
                    <button type="button" class="link" onClick={() => setQuery({ operation })}>
                      {operation}
                    </button>
                  ),
                },
                {
                  head: 'Of',
                  by: ({ object }) => object,
                  kind: 'code',
                  wide: true,
                  cell: ({ object }) => (
                    <button type="button" class="link" onClick={() => setQuery({ object })}>
                      {object}
                    </button>
                  ),
                },
                {
                  head: 'Change',
                  by: (row) => wordsOf(row),
                  cell: ({ before, after }) => <Change before={before} after={after} />,
                },
              ]}
            />
          )
        }
      </Shown>
    </>
  )
}

function wordsOf({ before, after }: Pick<AuditRecord, 'before' | 'after'>): string {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  const tell = (value: unknown) => (value === null || value === undefined ? 'none' : String(value))
  const parts = names.map((name) => {
    const was = before?.[name]
    return before && was !== undefined
      ? `${name} ${tell(was)} → ${tell(after?.[name])}`
      : `${name} ${tell(after?.[name])}`
  })
  return parts.join(', ')
}

function Change(record: Pick<AuditRecord, 'before' | 'after'>) {
  const text = wordsOf(record)
  return <span title={text}>{text || '–'}</span>
}
