import { readCredits, tellAway, tellCredits } from '../pure/format.ts'
import type { Account, Budget, UpstreamState } from '../shapes.ts'
import { Icon, type IconName } from './icons.tsx'
import { Time } from './numbers.tsx'

/* States are shown by a sign and a word, never by a colour alone. */

export function AccountState({ state, balance }: Pick<Account, 'state' | 'balance'>) {
  if (state === 'active' && readCredits(balance) <= 0n)
    return (
      <span class="state bad">
        <Icon name="trouble" /> no credit
      </span>
    )
  return state === 'active' ? (
    <span class="state good">
      <Icon name="ready" /> active
    </span>
  ) : (
    <span class="state warn">
      <Icon name="off" /> suspended
    </span>
  )
}

const failingSign = ['trouble', 'bad', 'failing'] as const

const upstreamSigns: Record<UpstreamState['state'] | 'disabled', readonly [IconName, string, string]> = {
  ready: ['ready', 'good', 'ready'],
  trial: ['trial', 'warn', 'on trial'],
  cooling: ['waiting', 'warn', 'left alone'],
  disabled: ['off', 'warn', 'disabled'],
  no_key: ['trouble', 'bad', 'no key'],
  off: ['off', 'muted', 'off'],
}

/**
 * Shows the state of an upstream account. A failing account is not shown as ready. Its failures are not shown while it
 * gets no requests, because it is off, disabled or without a key (CON-8).
 */
export function UpstreamSign({ state, failing = false }: Pick<UpstreamState, 'state'> & { failing?: boolean }) {
  const isShown = failing && state !== 'off' && state !== 'disabled' && state !== 'no_key'
  const [icon, kind, known] = isShown ? failingSign : (upstreamSigns[state] ?? ['trial', 'muted', state])
  const word = isShown && state !== 'ready' ? `${known}, ${upstreamSigns[state][2]}` : known
  return (
    <span class={`state ${kind}`}>
      <Icon name={icon} /> {word}
    </span>
  )
}

/** Shows that a model fails. */
export function FailingModel() {
  return (
    <span class="state bad">
      <Icon name="trouble" /> failing
    </span>
  )
}

/** Shows how a request ended. */
export function Outcome({ outcome, code }: { outcome: string | null; code?: string | null }) {
  if (outcome === null) return <span class="none">under way</span>
  const kind = outcome === 'ok' ? 'good' : outcome === 'refused' || outcome.startsWith('client') ? 'warn' : 'bad'
  const icon: IconName = outcome === 'ok' ? 'ready' : kind === 'warn' ? 'off' : 'trouble'
  return (
    <span class={`state ${kind}`} title={code ?? undefined}>
      <Icon name={icon} /> {outcome === 'ok' ? 'ok' : (code ?? outcome).replaceAll('_', ' ')}
    </span>
  )
}

/**
 * Explains why a request has no model. Most requests without one were refused before the model's name was read, so the
 * name need not be unknown.
 */
export function tellNoModel(code: string | null): string {
  return code === 'model_not_found' ? 'none that is known' : 'not read: the request ended before that'
}

const pers = { day: 'a day', week: 'a week', month: 'a month' } as const

/** Shows a key's budget: a bar, the figures, and when it renews. */
export function BudgetBar({ budget }: { budget: Budget | null | undefined }) {
  if (!budget) return <span class="none">no limit</span>
  const all = readCredits(budget.credits)
  const used = readCredits(budget.spent) + readCredits(budget.held)
  const share = all > 0n ? Math.min(1, Number((used * 1_000n) / all) / 1_000) : 1
  const kind = share >= 1 ? 'spent' : share >= 0.8 ? 'near' : ''
  const words = `${tellCredits(used)} of ${tellCredits(all)}${budget.per ? ` ${pers[budget.per]}` : ' in all'}`
  return (
    <span class={`budget ${kind}`}>
      <meter min={0} max={1} value={share} aria-label={words} />
      <span class="words">
        {words}
        {budget.renews_at && (
          <span class="small">
            {' '}
            · renews <time dateTime={budget.renews_at}>{tellAway(budget.renews_at, Date.now())}</time>
          </span>
        )}
      </span>
    </span>
  )
}

export function Expires({ iso, revoked }: { iso: string | null; revoked?: string | null }) {
  if (revoked)
    return (
      <span class="state muted">
        <Icon name="off" /> revoked <Time iso={revoked} />
      </span>
    )
  if (!iso) return <span class="none">never</span>
  const isOver = Date.parse(iso) < Date.now()
  return (
    <span class={isOver ? 'state bad' : undefined} title={iso}>
      {isOver ? 'expired ' : ''}
      {tellAway(iso, Date.now())}
    </span>
  )
}
