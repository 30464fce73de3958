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
    return `## ${subject}\n\n| Status | \`code\` | \`type\` in chat completions | Cause | Cure |\n|---|---|---|---|---|\n${lines.join('\n')}\n`
  })
  return `# Error codes

${made}

This page lists every error that a client can get. The \`code\` of an error is the same on each wire (API format). The column \`type\` is for
OpenAI chat completions. [interface.md](interface.md#71-envelopes) describes the errors of the other wires. [limits.md](limits.md) quotes the
messages about limits. \`triwire explain\` shows details about one request.

${parts.join('\n')}`
})

putGenerated('docs/log-events.md', () => {
  const parts = Object.entries(logEvents).map(([subject, rows]) => `## ${subject}\n\n${eventTable(rows)}\n`)
  return `# Log events

${made}

This page lists every event that the server logs about itself. [operating.md](operating.md#logs) describes the log lines about requests. In
the tables, words in \`code\` are fields or settings. An *account* pays for requests of your clients. An *upstream* is a provider or a model server, and an
*upstream account* is your account there.

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
