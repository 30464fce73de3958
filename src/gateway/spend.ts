import { renewsAt } from '../accounts/budget.ts'
import { type Calendar, createCalendar } from '../accounts/calendar.ts'
import { isOfSession } from '../accounts/sign-in/tokens.ts'
import type { Config } from '../config/config.ts'
import { wires } from '../wires/wires.ts'
import type { Gateway } from './gateway.ts'
import type { CallRecord } from './record.ts'

/** The budget of a person, as their agent shows it. @property share what is spent of it, from 0 @property resetsMs undefined: never */
export type PersonSpend = { share: number; resetsMs: number | undefined }

/** Calendars of the reporting zone; a reload may bring another one. */
const calendars = new WeakMap<Config, Calendar>()

/** Finds the budget of the person of a session, when an answer begins on a wire whose agents show it. */
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
