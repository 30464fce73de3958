import { formatTime } from '../accounts/calendar.ts'
import { formatCredits, nanosPerCredit } from '../accounts/credit.ts'
import type { OperatorRole } from '../accounts/operators.ts'

/*
 * The list "Needs you" (CON-P3): what an operator should act on now. This module computes its lines from facts, without
 * I/O. `src/live/needs.ts` collects the facts.
 */

const [hourMs, dayMs] = [3_600_000, 86_400_000]

/** The thresholds of the rules. Amounts are in nano-credits, times in ms. */
export const needLimits = {
  /** An account is listed if its credit would end within this time at the rate of last week's spending. */
  dryMs: 3 * dayMs,
  /**
   * The shortest time over which a rate of spend is computed. One hour of trials in a new account says nothing about
   * later spend.
   */
  spendingMs: dayMs,
  unusedMs: 90 * dayMs,
  /** An hour is listed if it cost this many times as much as the same hour a week ago. */
  leapTimes: 3n,
  /** If the hour a week ago cost less than this, it is compared as if it had cost this amount (see `leapTimes`). */
  tinyNanos: nanosPerCredit,
  /** An upstream account is listed if it is not ready for this long. */
  coolingMs: 10 * 60_000,
  /**
   * An upstream account is listed after this many failures in a row. One failure is too few, because the account may
   * get no further request for days after it.
   */
  failuresMin: 3,
  certificateMs: 21 * dayMs,
  certificateSoonMs: 3 * dayMs,
  pricesMs: 30 * dayMs,
  /** The most lines of one rule. If there are more, a further line says how many are not shown. */
  linesMax: 10,
} as const

type NamedKey = { id: string; name: string; accountName: string }

/** A budget that is spent. @property untilMs when it renews, in Unix ms; undefined if it never renews */
type SpentBudget = { id: string; name: string; fromMs: number; untilMs: number | undefined; budgetNanos: bigint }

export type NeedFacts = {
  nowMs: number
  /** Active accounts that spent in the last week. @property sinceMs when that week began, or the account was created */
  accounts: readonly {
    id: string
    name: string
    balanceNanos: bigint
    spentNanos: bigint
    sinceMs: number
    /** The time of the next monthly grant, if there is one. */
    grantMs: number | undefined
  }[]
  spentAccounts: readonly SpentBudget[]
  spentKeys: readonly (SpentBudget & { accountName: string })[]
  /** People who have spent their budgets. A person's budget is for all their keys together (Y20). */
  spentPersons: readonly (SpentBudget & { accountId: string })[]
  /** Valid keys that were not used lately. @property sinceMs the time of the last use, or else of the creation */
  unusedKeys: readonly (NamedKey & { sinceMs: number })[]
  /** The current hour and the hour before it, each with the spend of the same hour a week ago. */
  hours: readonly {
    fromMs: number
    spentNanos: bigint
    weekAgoNanos: bigint
    /**
     * Whether anything was spent around the same hour a week ago. If not, there is nothing to compare with, for example
     * in a new store.
     */
    hasWeekAgo: boolean
    key: (NamedKey & { spentNanos: bigint }) | undefined
  }[]
  failingModels: readonly string[]
  /**
   * Upstream accounts in use that are not ready. `failures` counts failures in a row. `sinceMs` is when this server
   * noticed.
   */
  services: readonly {
    model: string
    upstream: string
    account: string | null
    state: 'cooling' | 'trial' | 'no_key'
    cause: string | null
    failures: number
    sinceMs: number
  }[]
  /** Webhooks that did not accept their latest message. `pending` counts messages that will be sent again. */
  webhooks: readonly { url: string; pending: number; sinceMs: number }[]
  ledger: { isWritable: boolean; blockedAccounts: number }
  /** The problem of a clock in words. @property isDoubted whether an operator can end the problem by a confirmation */
  clock: { text: string; isDoubted: boolean } | null
  certificates: readonly { listener: 'admin' | 'client'; endsMs: number }[]
  /** Rows of price lists that will come into force. */
  prices: readonly { model: string; fromMs: number }[]
}

type NeedSeverity = 'bad' | 'warn' | 'note'

/** A line of the list of needs. @property subject distinguishes the line from others that the same rule makes */
type FoundNeed = {
  subject: string
  severity: NeedSeverity
  text: string
  sinceMs?: number
  /** The console's page for this line, as an address relative to the console's address. */
  link: string
  command: string
}

/**
 * A rule that finds needs. The role finance sees only rules about money (Y22). If a rule finds more than `linesMax`
 * lines, one further line counts the rest. `rest` has the link and the text of this line.
 */
type NeedRule = {
  about: 'money' | 'operation'
  rest?: readonly [link: string, words: string]
  find(facts: NeedFacts): FoundNeed[]
}

/** The outcomes that count as failed answers of a model (CON-8). */
const failures = 'upstream_error,upstream_cut,upstream_stall'

/** Matches the causes that are logged if a provider refuses our account for its key, its credit or its permissions. */
const refusals = /^upstream_(?:401|402|403|account_(?:key|spent|denied))$/

/** All rules for the list of needs. Of the lines that a rule finds, the worst come first. */
const rules = {
  ledger_blocked: {
    about: 'operation',
    find: ({ ledger: { isWritable, blockedAccounts } }) =>
      isWritable && blockedAccounts === 0
        ? []
        : [
            {
              ...{ subject: '', severity: 'bad', link: '', command: 'triwire status' },
              text: isWritable
                ? `The ledger takes no debits of ${count(blockedAccounts, 'account')}, whose requests are refused.`
                : 'The ledger takes no debits, so all requests are refused.',
            },
          ],
  },
  clock_wrong: {
    about: 'operation',
    find: ({ clock }) =>
      clock === null
        ? []
        : [
            {
              ...{ subject: '', severity: 'bad', link: '' },
              command: clock.isDoubted ? 'triwire clock confirm' : 'triwire status',
              text: `A clock is wrong: ${clock.text}.`,
            },
          ],
  },
  model_failing: {
    about: 'operation',
    rest: ['models', 'models that fail'],
    find: ({ failingModels }) =>
      failingModels.map((id) => ({
        ...{ subject: id, severity: 'bad', command: `triwire requests --model ${id} --outcome ${failures}` },
        text: `At least half of the last answers of model ${id} failed.`,
        link: `requests?${new URLSearchParams({ model: id, outcome: failures })}`,
      })),
  },
  upstream_refused: {
    about: 'operation',
    rest: ['upstreams', 'upstream accounts that are refused'],
    find: ({ services }) =>
      byAccount(services.filter((one) => isRefused(one))).map((one) => ({
        ...{ subject: nameOf(one), severity: 'bad', link: 'upstreams', sinceMs: one.sinceMs },
        ...(one.state === 'no_key'
          ? { command: 'triwire check --online', text: `Upstream account ${nameOf(one)} has no key.` }
          : {
              command: `triwire upstream retry ${one.upstream}`,
              text: `Upstream account ${nameOf(one)} is refused by its provider (${one.cause}).`,
            }),
      })),
  },
  upstream_cooling: {
    about: 'operation',
    rest: ['upstreams', 'upstream accounts that fail'],
    find: ({ services, nowMs }) =>
      byAccount(services.filter((one) => !isRefused(one) && isLongLeft(one, nowMs))).map((one) => ({
        ...{
          subject: nameOf(one),
          severity: 'warn',
          link: 'upstreams',
          command: `triwire upstream retry ${one.upstream}`,
        },
        sinceMs: one.sinceMs,
        text: `Upstream account ${nameOf(one)} has failed for ${sayTime(nowMs - one.sinceMs)}${one.cause ? ` (${one.cause})` : ''}.`,
      })),
  },
  account_dry: {
    about: 'money',
    rest: ['accounts', 'accounts that run dry'],
    find: ({ accounts, nowMs }) =>
      accounts
        .map((one) => ({ ...one, leftMs: lastsMs(one, nowMs) }))
        .filter(
          ({ leftMs, grantMs }) => leftMs < needLimits.dryMs && !(grantMs !== undefined && grantMs <= nowMs + leftMs),
        )
        .sort((a, b) => a.leftMs - b.leftMs)
        .map(({ id, name, balanceNanos, spentNanos, leftMs, sinceMs }) => ({
          ...{ subject: id, severity: leftMs > 0 ? 'warn' : 'bad', link: `accounts/${id}` },
          command: `triwire account credit ${id} AMOUNT --reference REFERENCE`,
          text:
            leftMs > 0
              ? `Account ${name} runs dry in ${sayTime(leftMs)}: it has ${sayCredits(balanceNanos)} credits, and spent ${sayCredits(spentNanos)} in ${sayTime(nowMs - sinceMs)}.`
              : `Account ${name} has no credit left, and spent ${sayCredits(spentNanos)} in ${sayTime(nowMs - sinceMs)}.`,
        })),
  },
  account_budget_spent: {
    about: 'money',
    rest: ['accounts', 'accounts whose budget is spent'],
    find: ({ spentAccounts }) =>
      spentAccounts.map((one) => spentNeed(one, 'account', `Account ${one.name} has spent its`, `accounts/${one.id}`)),
  },
  person_budget_spent: {
    about: 'operation',
    rest: ['accounts', 'people whose budget is spent'],
    find: ({ spentPersons }) =>
      spentPersons.map((one) => spentNeed(one, 'person', `${one.name} has spent their`, `accounts/${one.accountId}`)),
  },
  key_budget_spent: {
    about: 'operation',
    rest: ['keys', 'keys whose budget is spent'],
    find: ({ spentKeys }) =>
      spentKeys.map((one) =>
        spentNeed(one, 'key', `Key ${one.name} of ${one.accountName} has spent its`, `keys/${one.id}`),
      ),
  },
  spend_leap: {
    about: 'money',
    find: ({ hours }) => {
      const hour = hours.find(isLeap)
      if (!hour) return []
      const { key, fromMs, spentNanos, weekAgoNanos } = hour
      const most = key ? `; key ${key.name} of ${key.accountName} spent ${sayCredits(key.spentNanos)} of it` : ''
      return [
        {
          ...{ subject: key?.id ?? '', severity: 'warn', sinceMs: fromMs },
          link: key ? `keys/${key.id}` : 'requests',
          command: key ? `triwire key show ${key.id}` : 'triwire usage table --by key',
          text: `The hour from ${sayMoment(fromMs)} cost ${sayCredits(spentNanos)} credits, the same hour last week ${sayCredits(weekAgoNanos)}${most}.`,
        },
      ]
    },
  },
  webhook_unheard: {
    about: 'operation',
    rest: ['webhooks', 'webhooks that do not take messages'],
    find: ({ webhooks }) =>
      webhooks.map(({ url, pending, sinceMs }) => ({
        ...{ subject: url, severity: 'warn', sinceMs, link: 'webhooks', command: 'triwire webhooks' },
        text: `Webhook ${url} does not take its messages: ${count(pending, 'message')} ${pending === 1 ? 'waits' : 'wait'}.`,
      })),
  },
  certificate_ends: {
    about: 'operation',
    find: ({ certificates, nowMs }) =>
      certificates
        .filter(({ endsMs }) => endsMs - nowMs < needLimits.certificateMs)
        .map(({ listener, endsMs }) => ({
          ...{ subject: `${listener}:${endsMs}`, link: '', command: 'triwire reload' },
          severity: endsMs - nowMs < needLimits.certificateSoonMs ? 'bad' : 'warn',
          text:
            endsMs > nowMs
              ? `The certificate of the ${listener} listener ends in ${sayTime(endsMs - nowMs)}.`
              : `The certificate of the ${listener} listener ended on ${sayMoment(endsMs)}.`,
        })),
  },
  key_unused: {
    about: 'operation',
    rest: ['keys', 'keys that nobody uses'],
    find: ({ unusedKeys, nowMs }) =>
      unusedKeys
        .filter(({ sinceMs }) => nowMs - sinceMs >= needLimits.unusedMs)
        .sort((a, b) => a.sinceMs - b.sinceMs)
        .map(({ id, name, accountName, sinceMs }) => ({
          ...{ subject: id, severity: 'note', sinceMs, link: `keys/${id}`, command: `triwire key revoke ${id}` },
          text: `Key ${name} of ${accountName} was not used for ${Math.floor((nowMs - sinceMs) / dayMs)} days.`,
        })),
  },
  price_change: {
    about: 'money',
    rest: ['models', 'changes of prices'],
    find: ({ prices, nowMs }) => {
      const ahead = prices.filter(({ fromMs }) => fromMs > nowMs && fromMs - nowMs <= needLimits.pricesMs)
      const byTime = [...Map.groupBy(ahead, ({ fromMs }) => fromMs)].sort(([a], [b]) => a - b)
      return byTime.map(([fromMs, rows]) => {
        const [first, ...others] = [...new Set(rows.map(({ model }) => model))]
        const of =
          others.length === 0 ? `Model ${first} has` : `Model ${first} and ${count(others.length, 'other')} have`
        return {
          ...{ subject: `${fromMs}`, severity: 'note', command: `triwire price ${first}` },
          link: others.length === 0 ? `models/${encodeURIComponent(first!)}` : 'models',
          text: `${of} other prices from ${sayMoment(fromMs)} on.`,
        }
      })
    },
  },
} as const satisfies Record<string, NeedRule>

export type NeedName = keyof typeof rules

export const needNames = Object.keys(rules) as NeedName[]

export const severities = ['bad', 'warn', 'note'] as const satisfies NeedSeverity[]

/** A line in the list of needs. A need is something that an operator should do. Its shape is `needShape`. */
export type Need = {
  id: string
  rule: NeedName
  severity: NeedSeverity
  text: string
  since: string | null
  link: string
  command: string
}

/** Makes the list of needs (things to act on). The worst come first, and equally bad ones in the order of the rules. */
export function listNeeds(facts: NeedFacts): Need[] {
  const lines = needNames.flatMap((rule) => {
    const { find, rest } = rules[rule] as NeedRule
    const found = find(facts)
    const shown = found.slice(0, needLimits.linesMax)
    const more = found.length - shown.length
    const told = shown.map((one) => lineOf(rule, one))
    if (more === 0 || !rest) return told
    const { severity, command } = shown.at(-1)!
    const [link, words] = rest
    return [
      ...told,
      lineOf(rule, { subject: 'more', severity, text: `There are ${more} more ${words}.`, link, command }),
    ]
  })
  return worstFirst(lines)
}

/**
 * Merges the needs that the servers have listed. If several servers list the same need, the earliest `since` is kept.
 */
export function mergeNeeds(lists: readonly (readonly Need[])[]): Need[] {
  const lines = new Map<string, Need>()
  for (const one of lists.flat()) {
    const known = lines.get(one.id)
    if (!known || (one.since ?? '') < (known.since ?? '')) lines.set(one.id, one)
  }
  return worstFirst([...lines.values()])
}

function worstFirst(lines: readonly Need[]): Need[] {
  return severities.flatMap((severity) => lines.filter((one) => one.severity === severity))
}

/** Returns the lines that a role sees (Y22). For finance, every line links to the only page of that role. */
export function needsFor(role: OperatorRole | undefined, needs: readonly Need[]): Need[] {
  if (role !== 'finance') return [...needs]
  return needs.filter(({ rule }) => rules[rule].about === 'money').map((one) => ({ ...one, link: 'finance' }))
}

function lineOf(rule: NeedName, { subject, sinceMs, ...line }: FoundNeed): Need {
  const id = subject === '' ? rule : `${rule}:${subject}`
  return {
    id,
    rule,
    severity: line.severity,
    text: line.text,
    since: formatTime(sinceMs),
    link: line.link,
    command: line.command,
  }
}

/**
 * Whether an hour cost at least `leapTimes` times as much as the same hour a week ago. False if nothing was spent
 * around that earlier hour.
 */
export function isLeap({ spentNanos, weekAgoNanos, hasWeekAgo }: Omit<NeedFacts['hours'][number], 'key'>): boolean {
  const base = weekAgoNanos > needLimits.tinyNanos ? weekAgoNanos : needLimits.tinyNanos
  return hasWeekAgo && spentNanos >= needLimits.leapTimes * base
}

/** Returns how long the credit of an account lasts, in ms. It is 0 without credit. */
function lastsMs({ balanceNanos, spentNanos, sinceMs }: NeedFacts['accounts'][number], nowMs: number): number {
  if (balanceNanos <= 0n) return 0
  const spendingMs = Math.max(needLimits.spendingMs, nowMs - sinceMs)
  return (Number(balanceNanos) / Number(spentNanos)) * spendingMs
}

type NeedyService = NeedFacts['services'][number]

function isRefused({ state, cause }: NeedyService): boolean {
  return state === 'no_key' || refusals.test(cause ?? '')
}

function isLongLeft({ failures, sinceMs }: NeedyService, nowMs: number): boolean {
  return failures >= needLimits.failuresMin && nowMs - sinceMs >= needLimits.coolingMs
}

/** Keeps one row for each upstream account: the row with the earliest `sinceMs`. */
function byAccount(services: readonly NeedyService[]): NeedyService[] {
  const groups = Map.groupBy(services, nameOf)
  return [...groups.values()].map((rows) => rows.reduce((first, one) => (one.sinceMs < first.sinceMs ? one : first)))
}

function nameOf({ upstream, account }: NeedyService): string {
  return account === null ? upstream : `${upstream}/${account}`
}

function count(many: number, word: string): string {
  return `${many} ${word}${many === 1 ? '' : 's'}`
}

/** Formats credits with two decimal places, and amounts below 0.01 with all decimal places. */
function sayCredits(nanos: bigint): string {
  const cent = nanosPerCredit / 100n
  return nanos > -cent && nanos < cent ? formatCredits(nanos) : (Number(nanos) / Number(nanosPerCredit)).toFixed(2)
}

function sayTime(ms: number): string {
  if (ms >= 2 * dayMs) return `${Math.floor(ms / dayMs)} days`
  if (ms >= 2 * hourMs) return `${Math.floor(ms / hourMs)} hours`
  return count(Math.max(1, Math.floor(ms / 60_000)), 'minute')
}

/**
 * Makes the line for a spent budget in the operator's list of needs.
 * @param kind the object that has the budget, as in the command `triwire key set`
 * @param begins the beginning of the text
 */
function spentNeed(one: SpentBudget, kind: 'account' | 'person' | 'key', begins: string, link: string): FoundNeed {
  return {
    ...{ subject: `${one.id}:${one.fromMs}`, severity: 'warn', link },
    command: `triwire ${kind} set ${one.id} --budget BUDGET`,
    text: `${begins} budget of ${sayCredits(one.budgetNanos)} credits${sayRenewal(one)}.`,
  }
}

function sayRenewal({ untilMs }: SpentBudget): string {
  return untilMs === undefined ? '' : `, which renews on ${sayMoment(untilMs)}`
}

function sayMoment(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
