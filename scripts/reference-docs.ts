import { type ErrorCode, errorTable } from '../src/errors.ts'
import { errorRows, type Row } from './reference/errors.ts'
import { logEvents } from './reference/log-events.ts'
import { putGenerated } from './support/generated.ts'

// Writes docs/errors.md and docs/log-events.md from their tables. `--check` only reports whether they are up to date.

const made = '<!-- Made by scripts/reference-docs.ts: change scripts/reference and run npm run generate. -->'

putGenerated('docs/errors.md', () => {
  const parts = Object.entries(errorRows).map(([subject, rows]) => {
    const lines = Object.entries(rows).map(([code, row]) => {
      const { status, type } = errorTable[code as ErrorCode]
      return `| ${status} | \`${code}\` | \`${type}\` | ${row.cause} | ${row.cure} |`
    })
    return `## ${subject}\n\n| Status | \`code\` | \`type\` on chat | Cause | Cure |\n|---|---|---|---|---|\n${lines.join('\n')}\n`
  })
  return `# Error codes

${made}

Every error that a client can get, by subject. The \`code\` is the same on each wire; \`type\` is the one of the chat wire, and the other forms
are in [interface.md](interface.md#71-envelopes). The sentences of limits are in [limits.md](limits.md), and \`triwire explain\` tells more about one request.

${parts.join('\n')}`
})

putGenerated('docs/log-events.md', () => {
  const parts = Object.entries(logEvents).map(([subject, rows]) => `## ${subject}\n\n${eventTable(rows)}\n`)
  return `# Log events

${made}

Every event of the process in the log, by subject. The fields of lines about requests are in [operating.md](operating.md#logs). Words in
\`code\` in a cause are fields of the line.

${parts.join('\n')}`
})

function eventTable(rows: Readonly<Record<string, Row>>): string {
  const lines = Object.entries(rows).map(([events, { cause, cure }]) => {
    return `| ${events
      .split(', ')
      .map((event) => `\`${event}\``)
      .join(', ')} | ${cause} | ${cure} |`
  })
  return `| \`event\` | Cause | Cure |\n|---|---|---|\n${lines.join('\n')}`
}
