import { formatCredits, parseCredits } from '../../src/accounts/credit.ts'
import type { ExportProvider, KindCounts } from '../../src/accounts/reconcile/exports.ts'

/* Exports of usage and costs as providers write them, for `reconcile`. */

export const hourMs = 3_600_000
/** The beginning of the first window of an export. */
export const startMs = Date.parse('2026-11-02T00:00:00Z')

/**
 * The provider's figures for a model in a window. If an export has tokens without money, the charge is in a row of its
 * own, as in a cost report.
 */
export type Counted = { window: number; model: string; tokens: KindCounts; requests: number; charge?: string }

/** Exports of our own making, in the form of each provider. */
export const writers: Record<ExportProvider, { windowMs: number; write(rows: readonly Counted[]): string }> = {
  openai: {
    windowMs: hourMs,
    write: (rows) =>
      JSON.stringify({
        object: 'page',
        data: rows.map(({ window, tokens, requests, charge, ...row }) => ({
          start_time: (startMs + window * hourMs) / 1_000,
          end_time: (startMs + (window + 1) * hourMs) / 1_000,
          results: [
            {
              model: `${row.model}-2026-09-30`,
              input_tokens: tokens.input + tokens.cache_read + tokens.cache_write,
              input_cached_tokens: tokens.cache_read,
              input_cache_write_tokens: tokens.cache_write,
              output_tokens: tokens.output,
              num_model_requests: requests,
              project_id: null,
            },
            ...(charge === undefined
              ? []
              : [
                  {
                    object: 'organization.costs.result',
                    amount: { value: Number(charge), currency: 'usd' },
                    line_item: `${row.model}-2026-09-30, input`,
                  },
                ]),
          ],
        })),
      }),
  },
  anthropic: {
    windowMs: hourMs,
    write: (rows) =>
      rows
        .map(({ window, tokens, charge, ...row }) =>
          JSON.stringify({
            data: [
              {
                starting_at: new Date(startMs + window * hourMs).toISOString(),
                ending_at: new Date(startMs + (window + 1) * hourMs).toISOString(),
                results: [
                  {
                    model: `${row.model}-20260930`,
                    uncached_input_tokens: tokens.input,
                    cache_read_input_tokens: tokens.cache_read,
                    cache_creation: {
                      ephemeral_5m_input_tokens: tokens.cache_write - longWrites(tokens),
                      ephemeral_1h_input_tokens: longWrites(tokens),
                    },
                    output_tokens: tokens.output,
                    api_key_id: null,
                  },
                  ...(charge === undefined
                    ? []
                    : [
                        {
                          ...{ amount: cents(charge), currency: 'USD', cost_type: 'tokens' },
                          model: `${row.model}-20260930`,
                        },
                        // Costs of other kinds name no model.
                        { amount: '4.2', currency: 'USD', cost_type: 'code_execution', model: null },
                      ]),
                ],
              },
            ],
          }),
        )
        .join('\n'),
  },
  aws: {
    windowMs: hourMs,
    write: (rows) =>
      [
        'line_item_usage_start_date,line_item_usage_end_date,line_item_usage_type,line_item_usage_amount,pricing_unit,line_item_unblended_cost',
        ...rows.flatMap(({ window, tokens, charge = '', ...row }) =>
          Object.entries({
            'input-tokens': tokens.input,
            'output-tokens': tokens.output,
            'cache-read-input-token-count': tokens.cache_read,
            'cache-write-input-token-count': tokens.cache_write,
          }).map(([kind, count]) =>
            [
              new Date(startMs + window * hourMs).toISOString(),
              new Date(startMs + (window + 1) * hourMs).toISOString(),
              `"USE1-${row.model}-${kind}"`,
              (count / 1_000).toFixed(10),
              '1K tokens',
              charge && chargeOf(charge, kind),
            ].join(),
          ),
        ),
        '',
      ].join('\r\n'),
  },
  openrouter: {
    windowMs: 24 * hourMs,
    write: (rows) =>
      JSON.stringify({
        data: rows.map(({ window, tokens, requests, charge, ...row }) => ({
          date: new Date(startMs + window * 24 * hourMs).toISOString().slice(0, 10),
          model: `someone/${row.model}`,
          prompt_tokens: tokens.input + tokens.cache_read + tokens.cache_write,
          completion_tokens: tokens.output,
          reasoning_tokens: 0,
          requests,
          ...(charge !== undefined && { usage: Number(charge) }),
        })),
      }),
  },
}

/** The part of the writes that was written for an hour. */
export const longWrites = (tokens: KindCounts) => Math.floor(tokens.cache_write / 3)

/** Spreads the charge of a window over its kinds of tokens. */
function chargeOf(credits: string, kind: string): string {
  const nanos = parseCredits(credits)
  const each = nanos / 4n
  return formatCredits(kind === 'input-tokens' ? nanos - 3n * each : each)
}

const cents = (credits: string) => formatCredits(parseCredits(credits) * 100n)
