import { countsBreakHex } from '../../accounts/usage/histogram.ts'
import { timeColumn, type UsageDialect } from '../sql/usage.ts'

export const usageDialect: UsageDialect = {
  // Above the marks of their accounts: one look into the index for each, whatever the planner knows of the table.
  tail: {
    from: `(SELECT b.account_id, coalesce(m.seq, 0) AS mark, b.seq FROM triwire.balances b
        LEFT JOIN triwire.usage_marks m ON m.account_id = b.account_id WHERE b.seq > coalesce(m.seq, 0)) p
      CROSS JOIN LATERAL (SELECT * FROM triwire.entries e WHERE e.account_id = p.account_id AND e.seq > p.mark AND e.seq <= p.seq
        ORDER BY e.seq LIMIT p.seq - p.mark) e`,
    where: 'true',
  },
  // Two sums take a third of the time of a join, of which there would be a row for each account.
  progress: `SELECT (SELECT coalesce(sum(seq), 0) FROM triwire.usage_marks) AS folded,
    (SELECT coalesce(sum(seq), 0) FROM triwire.balances) AS entries`,
  bucketing: ({ bounds, grain, table }) => ({
    from: `triwire.${table}_${grain} u`,
    bucket: `width_bucket(u.${timeColumn(grain)}, $1::int[]) - 1`,
    values: [`{${bounds.join()}}`],
    isRanged: false,
    isInOrder: false,
  }),
  // A row for each bucket and group leaves the database, and not one for each row in it.
  joined: (column) => `string_agg(${column}, '\\x${countsBreakHex}'::bytea)`,
}
