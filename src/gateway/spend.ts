import { renewsAt } from '../accounts/budget.ts'
import { type Calendar, createCalendar } from '../accounts/calendar.ts'
import { isOfSession } from '../accounts/sign-in/tokens.ts'
import type { Config } from '../config/config.ts'
import { wires } from '../wires/wires.ts'
import type { Gateway } from './gateway.ts'
import type { CallRecord } from './record.ts'

/**
 * The budget of a person, as their agent shows it.
 * @property share the spent part of the budget; 0 if nothing is spent, 1 if all of it is
 * @property resetsMs when the budget renews, in Unix milliseconds; undefined if never
 */
export type PersonSpend = { share: number; resetsMs: number | undefined }

/** Calendars of the reporting time zone, by configuration: a reload may change the zone. */
const calendars = new WeakMap<Config, Calendar>()

/** Finds the budget of the person of a session; undefined if there is none, or if agents of the wire do not show it. */
export function spendOf(gateway: Gateway, { wire, keyPrefix = '', personBounds }: CallRecord): PersonSpend | undefined {
  const budget = personBounds?.budget
  if (!budget || !wire || !wires[wire].client.showsSpend || !isOfSession(keyPrefix)) return undefined
  const { config } = gateway.snapshots.current
  const calendar = calendars.get(config) ?? createCalendar(config.reporting)
  calendars.set(config, calendar)
  const leftNanos = gateway.admission.lookBudget({ ...personBounds, budget })
  const share = Number(((budget.nanos - leftNanos) * 10_000n) / budget.nanos) / 10_000
  return { share: Math.max(0, share), resetsMs: renewsAt(calendar, budget, personBounds.spend, gateway.nowMs()) }
}
