import type { PriceList } from '../../src/catalog/model.ts'
import { loadText } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'

/** DeepSeek's rule of 2026 (api-docs.deepseek.com, 4 October 2026), with the public holidays of China (gov.cn 202511/content_7047090). */
export const chineseHolidays = `
  cn:
    zone: Asia/Shanghai
    through: 2026-12-31
    days:
      [2026-01-01..2026-01-03, 2026-02-15..2026-02-23, 2026-04-04..2026-04-06, 2026-05-01..2026-05-05,
       2026-06-19..2026-06-21, 2026-09-25..2026-09-27, 2026-10-01..2026-10-07]`

const upstreams = 'upstreams: { up: { base_url: "http://127.0.0.1:1", accounts: [{ name: a, key: k }] } }'

/** Makes a configuration of one model with these prices, which are YAML in one or several lines. */
export function configOf(prices: string, calendars = chineseHolidays): string {
  return [
    `calendars:${calendars === '' ? ' {}' : calendars}`,
    'catalog:',
    '  pinned: 2026-11-01',
    '  models:',
    '    - id: m',
    '      wire: chat',
    '      upstream: up',
    '      max_output_tokens: 100',
    `      prices: ${prices}`,
    upstreams,
    '',
  ].join('\n')
}

export function listFrom(prices: string, calendars?: string): PriceList {
  return loadText(configOf(prices, calendars), 'prices', {}, {}).catalog.entries[0]!.prices
}

/** Returns the mistakes of prices, each with its line. */
export function mistakesOf(
  prices: string,
  calendars?: string,
): { path: string; line: number | undefined; message: string }[] {
  try {
    loadText(configOf(prices, calendars), 'prices', {}, {})
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ path, line, message }) => ({ path, line, message }))
  }
}

/** Returns the warnings of calendars. */
export function warningsOf(prices: string, calendars?: string): string[] {
  return loadText(configOf(prices, calendars), 'prices', {}, {})
    .warnings.map(({ message }) => message)
    .filter((message) => message.startsWith('calendars'))
}
