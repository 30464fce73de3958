import { setTimeout as pause } from 'node:timers/promises'
import type { ListedEntry } from '../../src/accounts/entries.ts'
import { ask, type Seen } from './clients.ts'
import { judgeBooks } from './deaths.ts'
import { type Course, type Finding, finding, type Size, type Trial } from './report.ts'
import type { Replica, Setting } from './setting.ts'

/** Law 13 of the books of credit: three servers reach a new month, and one is killed (kill -9). */
export const monthTurns: readonly Trial[] = [
  {
    name: "kills at a month's turn",
    demand: 'of three servers, one killed as the month turns: one grant, one lapse, 0 lost, 0 double',
    run: turnMonths,
  },
]

const grantNanos = 5n * 10n ** 6n
const lastMonth = '1999-12'

async function turnMonths(setting: Setting, size: Size, course: Course): Promise<Finding[]> {
  const kills = course.kills ?? (size === 'whole' ? 300 : 30)
  const alive: Replica[] = await Promise.all([1, 2, 3].map(() => setting.startReplica()))
  const seen: Seen[] = []
  const wrong: string[] = []
  for (let i = 0; i < kills; i++) {
    const { accountId, key } = await makeDue(setting)
    const asking = alive.flatMap((replica) => [0, 1].map((n) => ask(replica, { key, stream: n === 0 })))
    await pause(course.random() * 60)
    const victim = alive.shift()!
    await victim.kill()
    const others = alive.map((replica) => ask(replica, { key }))
    seen.push(...(await Promise.all([...asking, ...others])))
    // The new server posts grants that are due at its start, and so does its first request.
    alive.push(await setting.startReplica({ name: victim.name }))
    seen.push(...(await Promise.all(alive.map((replica) => ask(replica, { key })))))
    const entries = await setting.books.listEntries({ accountId, first: 'oldest', limit: 200 })
    wrong.push(...judge(accountId, entries))
  }
  const told = wrong.length
    ? wrong.slice(0, 3).join('; ')
    : `${kills} kills: each one grant and one lapse, of the right amount`
  return [finding(wrong.length === 0, told), ...(await judgeBooks(setting, seen))]
}

/**
 * Makes an account whose last grant was in an earlier month. The grant is an ordinary credit, so that no clock must be
 * set back. The account has no other credit.
 */
async function makeDue({ books, postgres, url }: Setting): Promise<{ accountId: string; key: string }> {
  const { id: accountId } = await books.createAccount(`turns-${Math.random()}`)
  const { key } = await books.createKey(accountId)
  const reference = `of ${accountId}/${lastMonth}`
  await books.credit(accountId, grantNanos, reference)
  postgres.run(
    `UPDATE triwire.accounts SET monthly_grant = ${grantNanos}, grant_lapses = 1, last_grant = '${reference}',
      revision = nextval('triwire.revisions') WHERE id = '${accountId}'`,
    new URL(url).pathname.slice(1),
  )
  return { accountId, key }
}

/** Computes from the entries alone how much must lapse, and compares. @param entries the oldest first */
function judge(accountId: string, entries: readonly ListedEntry[]): string[] {
  const [old, ...later] = entries
  const grants = later.filter(({ reference }) => reference?.startsWith('grant:'))
  const lapses = later.filter(({ reference }) => reference?.startsWith('lapse:'))
  if (grants.length !== 1 || lapses.length > 1)
    return [`${accountId}: ${grants.length} grants, ${lapses.length} lapses`]
  const before = later.slice(0, later.indexOf(grants[0]!))
  const balanceNanos = (before.at(-1) ?? old)!.balanceAfterNanos
  const spentNanos = before.reduce((sum, { amountNanos }) => sum + amountNanos, 0n)
  const restNanos = grantNanos - spentNanos < balanceNanos ? grantNanos - spentNanos : balanceNanos
  const expected = restNanos > 0n ? -restNanos : 0n
  const lapsed = lapses[0]?.amountNanos ?? 0n
  const isRight = grants[0]!.amountNanos === grantNanos && lapsed === expected
  return isRight ? [] : [`${accountId}: ${lapsed} lapsed, ${expected} should have`]
}
