import type { RequestRow } from '../shapes.ts'
import { readList } from './place.ts'

/** Whether a filter lists a request, by the same rules as the gateway's. */
export function fits(row: RequestRow, filter: Readonly<Record<string, string | undefined>>): boolean {
  const { account, key, model, upstream, outcome, status } = filter
  return (
    isNamed(account, [row.account?.id, row.account?.name]) &&
    isNamed(key, [row.key?.id, row.key?.prefix, row.key?.label]) &&
    isOne(model, row.model) &&
    isOne(upstream, row.upstream) &&
    isOne(outcome, row.outcome) &&
    isOne(status, row.status === null ? null : String(row.status))
  )
}

function isNamed(wanted: string | undefined, names: readonly (string | null | undefined)[]): boolean {
  return !wanted || names.includes(wanted)
}

function isOne(wanted: string | undefined, value: string | null): boolean {
  return !wanted || (value !== null && readList(wanted).includes(value))
}

/** Says which requests the plot above a list has besides those of the list, after its other words; empty if none. */
export function tellPlottedMore({ status, key }: Readonly<Record<string, string | undefined>>): string {
  return `${status ? ', of any status' : ''}${key ? ', of all keys of its rotation' : ''}`
}
