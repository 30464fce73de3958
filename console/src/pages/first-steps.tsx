import { useCallback, useState } from 'preact/hooks'
import { useLive } from '../api/live.ts'
import { refresh, useLoad } from '../api/load.ts'
import { isDemo } from '../demo.ts'
import { pageHref } from '../location.ts'
import { isAdmin } from '../session.ts'
import type { Account, Key, Listed, RequestRow } from '../shapes.ts'
import { recall, remember } from '../store.ts'
import { Icon } from '../ui/icons.tsx'

/**
 * The name of the stored state. `begun` means that the gateway had no request when this browser first opened the
 * console.
 */
const stored = 'triwire.first-steps'
const setUpStored = 'triwire.set-up'

/** Notes that the settings of an agent were copied. */
export function noteSetUp(): void {
  remember(setUpStored, 'yes')
}

/**
 * Lists the steps from an empty gateway to the first answered request of an agent. Steps are ticked automatically, and
 * the list can be dismissed.
 */
export function FirstSteps() {
  const [state, setState] = useState(recall(stored))
  if (!isAdmin() || isDemo.value || state === 'over') return null
  return (
    <Steps
      isBegun={state === 'begun'}
      setState={(next) => {
        remember(stored, next)
        setState(next)
      }}
    />
  )
}

function Steps({ isBegun, setState }: { isBegun: boolean; setState(next: 'begun' | 'over'): void }) {
  const accounts = useLoad<Listed<Account>>('/accounts?limit=1')
  const keys = useLoad<Listed<Key>>('/keys?limit=1')
  const requests = useLoad<Listed<RequestRow>>('/requests?limit=1')
  const [isSeen, setSeen] = useState(false)
  const see = useCallback(() => setSeen(true), [])
  const look = useCallback(() => refresh('/accounts?limit=1', '/keys?limit=1'), [])
  useLive('request.finished', isSeen ? undefined : see)
  useLive('account.changed', look)
  if (!accounts.data || !keys.data || !requests.data) return null
  const hasRequest = isSeen || requests.data.items.length > 0
  if (!isBegun) {
    // A gateway in use needs no first steps.
    queueMicrotask(() => setState(hasRequest ? 'over' : 'begun'))
    return null
  }
  const [account] = accounts.data.items
  const steps = [
    ['Make an account', account !== undefined, pageHref('accounts', undefined, { new: '1' })],
    ['Give it a key', keys.data.items.length > 0, account ? pageHref('accounts', account.id) : pageHref('accounts')],
    ['See the first request, live', hasRequest, pageHref('playground')],
    ['Set up an agent', recall(setUpStored) === 'yes', pageHref('setup')],
  ] as const
  return (
    <section class="panel first-steps" aria-labelledby="first-steps">
      <header>
        <h2 id="first-steps">First steps</h2>
        <span class="unit">{steps.filter(([, isDone]) => isDone).length} of 4</span>
        <div class="tools">
          <button type="button" onClick={() => setState('over')}>
            Dismiss
          </button>
        </div>
      </header>
      <ol>
        {steps.map(([text, isDone, href]) => (
          <li key={text} class={isDone ? 'done' : ''}>
            <span class={`state ${isDone ? 'good' : 'muted'}`}>
              <Icon name={isDone ? 'ready' : 'trial'} /> <span class="offscreen">{isDone ? 'done' : 'to do'}</span>
            </span>
            {isDone ? <span>{text}</span> : <a href={href}>{text}</a>}
          </li>
        ))}
      </ol>
    </section>
  )
}
