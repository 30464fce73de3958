import { countsBreakHex } from '../../accounts/usage/histogram.ts'
import { timeColumn, type UsageDialect } from '../sql/usage.ts'

export const usageDialect: UsageDialect = {
  // Entries that are in no row yet are the last ones.
  tail: {
    from: 'entries e LEFT JOIN usage_marks m ON m.account_id = e.account_id',
    where: 'e.id > (SELECT folded_id FROM usage_state) AND e.seq > ifnull(m.seq, 0)',
  },
  // Ids have no gaps, and up to `folded_id` all are folded.
  progress: 'SELECT folded_id AS folded, (SELECT ifnull(max(id), 0) FROM entries) AS entries FROM usage_state',
  bucketing({ bounds, grain, table }) {
    const [time, pairs] = [timeColumn(grain), bounds.slice(1).map((end, at) => [bounds[at], end])]
    // SQLite reads the buckets one by one, since an index has the rows of each together. No index has days of keys so.
    const isIndexed = grain !== 'd'
    return {
      from: isIndexed
        ? `json_each(?) b CROSS JOIN ${table}_${grain} u ON u.${time} >= b.value ->> 0 AND u.${time} < b.value ->> 1`
        : `${table}_d u`,
      bucket: isIndexed ? 'b.key' : undefined,
      values: isIndexed ? [JSON.stringify(pairs)] : [],
      isRanged: isIndexed,
      isInOrder: true,
    }
  },
  joined: (column) => `unhex(group_concat(hex(${column}), '${countsBreakHex}'))`,
}
