import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { withQuery } from '../api/ask.ts'
import { useLoad } from '../api/load.ts'
import { isDemo } from '../demo.ts'
import { pageHref, place, setQuery } from '../location.ts'
import type { ToolCall } from '../pure/answer.ts'
import { curlOf } from '../pure/curl.ts'
import { type ClientWire, clientWireNames, findWire, questionBody, spread } from '../pure/wires.ts'
import { isAdmin, isOwner, me } from '../session.ts'
import type { Account, Explanation, Listed, ModelRow, Setup } from '../shapes.ts'
import { recall, remember } from '../store.ts'
import { Code, Copy } from '../ui/copy.tsx'
import { useDraft } from '../ui/draft.ts'
import { Select } from '../ui/form.tsx'
import { Icon } from '../ui/icons.tsx'
import { Count, Ms } from '../ui/numbers.tsx'
import { type Choice, Pick } from '../ui/pick.tsx'
import { Empty, Failure, Panel, Skeleton } from '../ui/states.tsx'
import { Bill, useBill } from './explain.tsx'
import { OwnCost } from './own-requests.tsx'
import { type Payer, type Played, usePlay } from './play.ts'

/** Sends a request to a model on any wire, and shows raw events, usage and cost. An account pays. No text is stored. */
export function Playground() {
  const models = useLoad<Listed<ModelRow>>('/models')
  const accounts = useLoad<Listed<Account>>('/accounts?state=active&sort=name&limit=2')
  const { played, play, stop } = usePlay()
  if (isDemo.value) return <Empty>The playground is off in the demo, where nothing can be sent.</Empty>
  if (!isAdmin()) return <Empty>Requests are paid by an account: an operator with the role admin may send them.</Empty>
  if (models.refusal) return <Failure refusal={models.refusal} retry={models.reload} />
  if (accounts.refusal) return <Failure refusal={accounts.refusal} retry={accounts.reload} />
  if (!models.data || !accounts.data) return <Skeleton height={200} lines={2} />
  if (accounts.data.items.length === 0)
    return (
      <Empty
        act={
          <a class="button primary" href={pageHref('accounts', undefined, { new: '1' })}>
            Make an account
          </a>
        }
      >
        A request needs an active account that pays, and there is none yet.
      </Empty>
    )
  return (
    <div class="workbench">
      <OperatorsComposer
        models={models.data.items}
        only={accounts.data.items.length === 1 ? accounts.data.items[0] : undefined}
        play={play}
        stop={stop}
        isRunning={played?.state === 'running'}
      />
      <Results played={played} />
    </div>
  )
}

/** The playground for the owner of a key, who pays for it. */
export function OwnPlayground() {
  const models = (me.value?.models ?? []).map((id) => ({ id }))
  const { played, play, stop } = usePlay()
  if (models.length === 0) return <Empty>This key may use no model.</Empty>
  return (
    <div class="workbench">
      <Composer
        models={models}
        payer="self"
        send={(wire, body) => play('self', wire, body)}
        stop={stop}
        isRunning={played?.state === 'running'}
      />
      <Results played={played} />
    </div>
  )
}

function Results({ played }: { played: Played | undefined }) {
  return (
    <div class="results">
      {played ? <Result played={played} /> : <Empty>The answer is shown here, with its events and its cost.</Empty>}
    </div>
  )
}

type RunProps = { stop(): void; isRunning: boolean }

/** @property only the account that pays, if there is only one account */
type OperatorsProps = RunProps & {
  models: readonly ModelRow[]
  only: Account | undefined
  play(payer: Payer, wire: ClientWire, body: string): void
}

function OperatorsComposer({ only, play, ...props }: OperatorsProps) {
  const payer = usePayer(only)
  // Nothing can be sent until it is known which account pays.
  if (payer.isLoading) return <Skeleton height={200} lines={2} />
  const send = (wire: ClientWire, body: string) => {
    if (payer.id !== undefined) play({ account: payer.id }, wire, body)
    else payer.ask()
    return payer.id !== undefined
  }
  return <Composer payer={payer} send={send} {...props} />
}

type ComposerProps = RunProps & {
  /** An owner does not see which wire a model speaks. */
  models: readonly { id: string; wire?: string }[]
  payer: ReturnType<typeof usePayer> | 'self'
  /** @returns false if no account was chosen to pay yet */
  send(wire: ClientWire, body: string): boolean | void
}

/**
 * @property own a body that was edited by hand. It is sent as it is, with the model and the wire that were chosen then
 */
type Draft = { question: string; isStream: boolean; own: string | undefined; model: string; wire: string }

function Composer({ models, payer, send, stop, isRunning }: ComposerProps) {
  const { query } = place.value
  const model = query['model'] ?? models[0]?.id ?? ''
  const wire = findWire(query['wire']) ?? findWire(models.find(({ id }) => id === model)?.wire) ?? 'messages'
  const [draft, change] = useDraft<Draft>(
    'playground',
    { question: 'Say hello in three languages.', isStream: true, own: undefined, model, wire },
    // After a link to another model, a kept body is dropped, because it names the previous model.
    (kept) => (kept.model === model && kept.wire === wire ? kept : { ...kept, own: undefined }),
  )
  const { question, isStream, own } = draft
  useEffect(() => change({ model, wire }), [model, wire])
  const body = own ?? JSON.stringify(questionBody(wire, model, question, isStream), null, 2)
  const setup = useLoad<Setup>(withQuery('/setup/claude-code', { model: models[0]?.id }))
  return (
    <form
      class="panel composer"
      onSubmit={(event) => {
        event.preventDefault()
        // The browser may submit a form that has no submit button: Enter in some fields does it.
        if (isRunning) return
        if (send(wire, body) === false) event.currentTarget.querySelector<HTMLInputElement>('[role=combobox]')?.focus()
      }}
    >
      <header>
        <h2>Request</h2>
      </header>
      <div class="fields three">
        {payer !== 'self' && (
          <Pick<Account>
            label="Account"
            shown={payer.name}
            pathOf={(q) => withQuery('/accounts', { q, state: 'active', sort: 'name', limit: 20 })}
            choiceOf={({ id, name }) => ({ id, name, more: id })}
            onPick={payer.choose}
            error={payer.error}
          />
        )}
        <Select
          label="Model"
          value={model}
          options={models.map(({ id, wire }) => [id, wire ? `${id} (${wire})` : id] as const)}
          onChange={(next) => setQuery({ model: next }, 'replace')}
        />
        <Select
          label="Wire"
          value={wire}
          options={clientWireNames.map((one) => [one, one] as const)}
          onChange={(next) => setQuery({ wire: next }, 'replace')}
        />
      </div>
      <div class="field">
        <label for="question">Question</label>
        <textarea
          id="question"
          rows={4}
          value={question}
          disabled={own !== undefined}
          onInput={(event) => change({ question: event.currentTarget.value })}
        />
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={isStream}
          disabled={own !== undefined}
          onChange={(event) => change({ isStream: event.currentTarget.checked })}
        />
        as a stream
      </label>
      <div class="field">
        <label for="body">
          Body <span class="unit">JSON, as it is sent</span>
        </label>
        <textarea
          id="body"
          class="mono"
          rows={12}
          spellcheck={false}
          value={body}
          onInput={(event) => change({ own: event.currentTarget.value })}
        />
      </div>
      <div class="form-foot">
        {own !== undefined && (
          <button key="reset" type="button" onClick={() => change({ own: undefined })}>
            From the question again
          </button>
        )}
        <span class="small">
          {payer === 'self' ? 'You pay.' : 'The account pays.'} The text is kept in this tab only.
        </span>
        <Copy text={() => curlOf(setup.data?.base_url, wire, body)} label="Copy as curl" />
        <SendOrStop isRunning={isRunning} stop={stop} />
      </div>
    </form>
  )
}

/**
 * Finds the account that pays: the one in the address, else the one that this operator chose last in this browser.
 * Without either, the operator must choose, unless there is only one account.
 */
function usePayer(only: Account | undefined) {
  const stored = `triwire.payer.${me.value?.name}`
  const wanted = place.value.query['account'] ?? recall(stored)
  const { data, refusal } = useLoad<Account>(wanted && `/accounts/${encodeURIComponent(wanted)}`)
  const [isAsked, setAsked] = useState(false)
  const isSuspended = data?.state === 'suspended'
  // The account that was just chosen is known by its choice until it is loaded.
  const [picked, setPicked] = useState<Choice | undefined>(undefined)
  const known = data ?? (picked?.id === wanted ? picked : undefined)
  const account = wanted === undefined ? only : isSuspended || refusal ? undefined : known
  const error = isSuspended
    ? 'This account is suspended: choose another one.'
    : refusal?.status === 404
      ? 'There is no such account: choose the one that pays.'
      : (refusal?.message ?? (isAsked && !account ? 'Choose the account that pays.' : undefined))
  return {
    id: account?.id,
    name: (account ?? data)?.name ?? '',
    error,
    isLoading: wanted !== undefined && account === undefined && error === undefined,
    ask: () => setAsked(true),
    choose(choice: Choice | undefined) {
      setPicked(choice)
      remember(stored, choice?.id)
      setQuery({ account: choice?.id }, 'replace')
    },
  }
}

/**
 * Shows Send or Stop, and moves the focus from the button that disappears to the new one. Each has a `key`, so that
 * they are two elements. If Stop became Send while the browser still handles the click, the browser would submit the
 * form.
 */
function SendOrStop({ isRunning, stop }: { isRunning: boolean; stop(): void }) {
  const button = useRef<HTMLButtonElement>(null)
  const hasFocus = button.current !== null && document.activeElement === button.current
  useLayoutEffect(() => {
    if (hasFocus) button.current?.focus()
  }, [isRunning])
  return isRunning ? (
    <button key="stop" ref={button} type="button" onClick={stop} onKeyDown={ignoreRepeat}>
      Stop
    </button>
  ) : (
    <button key="send" ref={button} type="submit" class="primary" onKeyDown={ignoreRepeat}>
      Send
    </button>
  )
}

/** Ignores the repetitions of a key that is held down. They would stop the request and send it again. */
function ignoreRepeat(event: KeyboardEvent): void {
  if (event.repeat) event.preventDefault()
}

const endings = { running: ', streaming', over: '', stopped: ', stopped', broken: ', broken off' } as const

function Result({ played }: { played: Played }) {
  const { state, status, parts, requestId, events, body, firstMs, totalMs, refusal } = played
  const { text, reasoning, calls } = parts
  if (refusal) return <Failure refusal={refusal} />
  return (
    <>
      <Panel
        title="Answer"
        unit={status === undefined ? 'on its way' : `status ${status}${endings[state]}`}
        tools={text !== '' && <Copy text={text} quiet label="Copy answer" />}
      >
        <dl class="inline-facts">
          <div>
            <dt>First byte</dt>
            <dd>
              <Ms value={firstMs} />
            </dd>
          </div>
          <div>
            <dt>Total</dt>
            <dd>
              <Ms value={totalMs} />
            </dd>
          </div>
          {requestId && (
            <div>
              <dt>Request</dt>
              <dd>
                <a href={pageHref('requests', requestId)}>{requestId}</a>
              </dd>
            </div>
          )}
        </dl>
        {reasoning !== '' && (
          <details class="reasoning">
            <summary>Reasoning</summary>
            <p class="answer-text">{reasoning}</p>
          </details>
        )}
        <div class="answer-text" aria-live="off">
          {text || (calls.length === 0 && absence(state, status))}
        </div>
        {calls.length > 0 && <Calls calls={calls} />}
      </Panel>
      {requestId && state !== 'running' && (isOwner() ? <OwnCost id={requestId} /> : <Cost id={requestId} />)}
      {events.length > 0 ? (
        <Panel title="Events" unit={`${events.length} as they came`}>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be reachable without a mouse */}
          <section class="events" tabIndex={0} aria-label="Events">
            {events.map(({ name, data, ms }, at) => (
              <div class="event" key={at}>
                <span class="number small">{ms} ms</span>
                <code>
                  {name && <b>{name} </b>}
                  {data}
                </code>
              </div>
            ))}
          </section>
        </Panel>
      ) : (
        body !== '' && (
          <Panel title="Body">
            <Code text={spread(body)} label="body of the answer" />
          </Panel>
        )
      )}
    </>
  )
}

/** Explains why an answer has no text. */
function absence(state: Played['state'], status: number | undefined): string {
  if (state === 'running') return '…'
  if (state === 'stopped') return 'It was stopped.'
  if (state === 'broken') return 'The connection was lost before the end of the answer.'
  if (status === undefined || status < 400) return 'The answer has no text.'
  return `It ${status < 500 ? 'was refused' : 'failed'}: see the body.`
}

function Calls({ calls }: { calls: readonly ToolCall[] }) {
  return (
    <ul class="calls" aria-label="Tool calls">
      {calls.map(({ place, name, id, input }) => (
        <li key={place}>
          <h3>
            <Icon name="translate" /> {name} <code class="small">{id}</code>
          </h3>
          {input === '' ? <p class="small">without input</p> : <Code text={spread(input)} label={`input of ${name}`} />}
        </li>
      ))}
    </ul>
  )
}

/** Shows usage and price, which the gateway explains as soon as it has settled them. */
function Cost({ id }: { id: string }) {
  const told = useBill<Explanation>(`/requests/${encodeURIComponent(id)}/explain`, ({ settlement }) => settlement.state)
  return (
    <Panel title="Usage and cost">
      <div class="pad">
        {told.data ? (
          <>
            <Bill of={told.data} />
            {told.data.losses && told.data.losses.length > 0 && (
              <p class="small">
                <Count value={told.data.losses.length} /> lost in translation:{' '}
                {told.data.losses.map(({ field }) => field).join(', ')}
              </p>
            )}
          </>
        ) : told.refusal ? (
          <Failure refusal={told.refusal} retry={told.reload} />
        ) : (
          <Skeleton height={60} />
        )}
      </div>
    </Panel>
  )
}
