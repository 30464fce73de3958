import { createCalendar, utc } from '../accounts/calendar.ts'
import { formatCsvRow } from './csv.ts'
import type { ToldStatement } from './statement-shape.ts'

type LineFigures = Omit<ToldStatement['keys'][number], 'key'>

const counted = [
  ...(['requests', 'input_tokens', 'cache_read_tokens', 'cache_write_tokens', 'cache_write_1h_tokens'] as const),
  ...(['output_tokens', 'reasoning_tokens', 'amount'] as const),
]

const words = ['date', 'reference', 'model', 'tier', 'band', 'key', 'person', 'labels'] as const

/** Yields the lines of a statement in their order, each with its kind, its words and its figures. */
function* eachLine(
  told: ToldStatement,
): Iterable<[kind: string, words: Partial<Record<string, string | null>>, figures: Partial<LineFigures>]> {
  yield ['opening', {}, { amount: told.opening }]
  for (const { posted, reference, amount } of told.credit_lines)
    yield ['credit', { date: posted, reference }, { amount }]
  for (const { model, tier, band, ...figures } of told.use_lines) yield ['use', { model, tier, band }, figures]
  yield ['returns', {}, { amount: told.returns }]
  yield ['closing', {}, { amount: told.closing }]
  for (const { key, ...figures } of told.keys) yield ['by key', { key }, figures]
  for (const { person, ...figures } of told.people) yield ['by person', { person }, figures]
  for (const { labels, ...figures } of told.labels) yield ['by labels', { labels }, figures]
}

/**
 * Formats a statement as CSV. `closing` is the sum of the amounts above it, with the `use` lines subtracted. The lines
 * `by key`, `by person` and `by labels` each divide the same total, which is the use minus the returns. The last lines
 * have digests that prove the statement.
 */
export function formatStatementCsv(told: ToldStatement): string {
  const row = (cells: readonly (string | number | null | undefined)[], numbersFrom = cells.length) =>
    formatCsvRow(cells.map((value, at) => ({ value: value ?? null, isNumber: at >= numbersFrom })))
  const lines = [row(['line', ...words, ...counted])]
  for (const [kind, named, figures] of eachLine(told))
    lines.push(
      row([kind, ...words.map((name) => named[name]), ...counted.map((name) => figures[name])], 1 + words.length),
    )
  for (const [name, value] of proofsOf(told, 'csv')) lines.push(row([name, null, value]))
  return lines.join('')
}

function proofsOf(told: ToldStatement, form: 'csv' | 'html'): [name: string, value: string | null][] {
  const entries = told.from === null ? null : `${told.from} to ${told.to}`
  return [
    ...(Object.entries({ account: told.account, month: told.month, time_zone: told.time_zone }) as [string, string][]),
    ['entries', entries],
    ['digest', told.digest],
    ['head', told.head],
    ['command', told.command.replace(/json$/, form)],
  ]
}

const style = `body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em;color:#111;background:#fff}
table{border-collapse:collapse;width:100%;margin:1em 0}th,td{padding:.25em .5em;border-bottom:1px solid #ccc;text-align:left}
.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}tfoot td{font-weight:bold}
address,.proof td+td{white-space:pre-line;overflow-wrap:anywhere}@media print{body{margin:0;max-width:none;font-size:11px}tr{break-inside:avoid}}`

/** Formats a statement as an HTML page for printing. The page loads no resources and runs no scripts. */
export function formatStatementHtml(told: ToldStatement): string {
  const { symbol, currency, seller, buyer, month, closed } = told
  const money = (amount: string) => [symbol, amount].filter(Boolean).join(' ')
  const sum = (name: string, amount: string) =>
    `<tr><td>${name}</td><td class="n">${escapeHtml(money(amount))}</td></tr>`
  const { dateOf } = createCalendar({ ...utc, timeZone: told.time_zone })
  const credits = told.credit_lines.map((one) => [dateOf(Date.parse(one.posted)), one.reference, money(one.amount)])
  const rates = (price: ToldStatement['use_lines'][number]['price']) =>
    price
      ? [price.input, price.cache_read, price.cache_write, price.cache_write_1h, price.output].join(' / ') +
        (price.has_steps ? ' +' : '')
      : ''
  const figures = (line: LineFigures) => [
    ...[line.requests, line.input_tokens, line.cache_read_tokens, line.cache_write_tokens, line.output_tokens].map(
      (count) => count.toLocaleString('en'),
    ),
    money(line.amount),
  ]
  const used = ['Requests', 'Input', 'Cached', 'Cache writes', 'Output', 'Amount']
  const use = told.use_lines.map((line) => [line.model, line.tier, line.band, rates(line.price), ...figures(line)])
  const parts = (name: string, rows: readonly (readonly [string | null, LineFigures])[]) =>
    rows.some(([word]) => word !== null)
      ? table(
          `By ${name.toLowerCase()}`,
          [name, ...used],
          rows.map(([word, line]) => [word ?? '–', ...figures(line)]),
          1,
        )
      : ''
  const proofs = proofsOf(told, 'html').map(
    ([name, value]) => `<tr><td>${name}</td><td>${escapeHtml(value ?? '–')}</td></tr>`,
  )
  const title = `Statement ${month}`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(`${title} ${buyer}`)}</title><style>${style}</style></head><body><main>
${seller ? `<address>${escapeHtml(seller)}</address>` : ''}
<h1>${title}</h1>
<p>For ${escapeHtml(buyer)}${closed ? '' : '. The month is not over: this statement will change'}. Amounts in ${escapeHtml(currency)}, days of ${escapeHtml(told.time_zone)}.</p>
<table><tbody>${sum('Opening balance', told.opening)}${sum('Credits', told.credits)}${sum('Use', told.use)}${sum('Returns', told.returns)}</tbody>
<tfoot>${sum('Closing balance', told.closing)}</tfoot></table>
${credits.length > 0 ? table('Credits', ['Date', 'Reference', 'Amount'], credits, 2) : ''}
${use.length > 0 ? table('Use', ['Model', 'Tier', 'Band', 'Per million: input / cached / cache writes / writes for 1 hour / output', ...used], use, 3) : ''}
${parts(
  'Key',
  told.keys.map((line) => [line.key, line]),
)}
${parts(
  'Person',
  told.people.map((line) => [line.person, line]),
)}
${parts(
  'Labels',
  told.labels.map((line) => [line.labels, line]),
)}
<h2>Proof</h2><table class="proof"><tbody>${proofs.join('')}</tbody></table>
</main></body></html>
`
}

/** Formats a table in HTML. @param numbersFrom the first column of figures */
function table(
  title: string,
  head: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
  numbersFrom: number,
): string {
  const cells = (row: readonly (string | number | null)[], tag: string) =>
    row
      .map((value, at) => `<${tag}${at >= numbersFrom ? ' class="n"' : ''}>${escapeHtml(`${value ?? ''}`)}</${tag}>`)
      .join('')
  const body = rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n')
  return `<h2>${title}</h2><table><thead><tr>${cells(head, 'th')}</tr></thead><tbody>\n${body}\n</tbody></table>`
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (found) => escapes[found]!)
}
