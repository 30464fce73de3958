import type { WebhookRow } from '../shapes.ts'

type EventName = WebhookRow['events'][number]

/** Whether the gateway sends an event to a webhook that names no events. */
const isUsual: Readonly<Record<EventName, boolean>> = {
  ...{ credit_low: true, upstream_down: true, ledger_unwritable: true, clock_wrong: true, needs_changed: false },
  ...{ key_budget_80: true, key_budget_spent: true, account_budget_80: true, account_budget_spent: true },
  ...{ person_budget_80: true, person_budget_spent: true },
}

/** Returns words for the events of a webhook. `needs_changed` repeats what the other events report. */
export function tellEvents(events: readonly EventName[]): { short: string; all: string } {
  const all = events.map((event) => event.replace('_80', ' at 80 %').replaceAll('_', ' ')).join(', ')
  const isAll = Object.entries(isUsual).every(([event, usual]) => !usual || events.includes(event as EventName))
  return { short: isAll ? 'everything' : all, all }
}
