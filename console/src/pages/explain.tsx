import type { ComponentChildren } from 'preact'
import { limitReasons } from '../../../src/limit-reasons.ts'
import { useAgain, useLoad, useSteady } from '../api/load.ts'
import { pageHref } from '../location.ts'
import { exactCredits, readCredits } from '../pure/format.ts'
import { priceLines } from '../pure/price.ts'
import { creditName } from '../session.ts'
import type { Explanation } from '../shapes.ts'
import { Outcome, tellNoModel } from '../ui/badges.tsx'
import { Count, Ms } from '../ui/numbers.tsx'
import { Shown } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'
import { Breakable, Words } from '../ui/words.tsx'
import { Fact } from './key-fields.tsx'
import { ExplainPanel } from './request-frame.tsx'

/** Explains step by step why a request got its answer. Its texts are not shown, because they are stored nowhere. */
export function Explain({ id, close }: { id: string; close?: () => void }) {
  const told = useSteady<Explanation>(`/requests/${encodeURIComponent(id)}/explain`)
  return (
    <ExplainPanel id={id} close={close}>
      <Shown of={told} height={120} lines={3}>
        {(one) => <Steps of={one} />}
      </Shown>
    </ExplainPanel>
  )
}

export function Steps({ of: told }: { of: Explanation }) {
  const { account, key, model, alias, wire, settlement } = told
  return (
    <ol class="steps">
      <Step title="Asked">
        <dl class="facts">
          <Fact name="Model">
            {model ? <a href={pageHref('models', model)}>{model}</a> : tellNoModel(settlement.code)}
            {alias && alias !== model && <span class="small"> asked for as {alias}</span>}
          </Fact>
          {told.moved && (
            <Fact name="Moved">
              {moves[told.moved.why] ?? told.moved.why}
              {told.moved.cost !== null && `; it cost ${told.moved.cost} ${creditName()} at most`}
            </Fact>
          )}
          {told.fell_back && told.fell_back.length > 0 && (
            <Fact name="Fell back">
              {told.fell_back
                .map(({ from, to, cause }) => `${from} to ${to} (${fallbacks[cause] ?? cause})`)
                .join(', ')}
            </Fact>
          )}
          <Fact name="Wires">
            {wire.client ?? '–'}
            {wire.model && wire.model !== wire.client ? ` to ${wire.model}, translated` : ''}
          </Fact>
          <Fact name="Account">
            {account?.id ? <a href={pageHref('accounts', account.id)}>{account.name ?? account.id}</a> : 'not known'}
          </Fact>
          <Fact name="Key">
            {key?.id ? (
              <a href={pageHref('keys', key.id)}>{told.key_name ?? `${key.prefix ?? key.id}…`}</a>
            ) : account ? (
              'none: from the playground'
            ) : (
              'none'
            )}
          </Fact>
          {told.person && <Fact name="Person">{told.person_name ?? <code>{told.person}</code>}</Fact>}
          {told.labels && <Fact name="Labels">{told.labels}</Fact>}
        </dl>
      </Step>
      <Step title="Attempts">
        <Attempts attempts={told.attempts} stopped={told.stopped} />
      </Step>
      <Step title="Ended">
        <dl class="facts">
          <Fact name="Outcome">
            <Outcome outcome={settlement.outcome} />
          </Fact>
          {settlement.status !== null && <Fact name="Status">{settlement.status}</Fact>}
          {settlement.code && (
            <Fact name="Code">
              <code>{settlement.code}</code>
            </Fact>
          )}
          {settlement.reason && <Fact name="Reason">{limitReasons[settlement.reason]?.said ?? settlement.reason}</Fact>}
          {settlement.message && <Fact name="The client got">{settlement.message}</Fact>}
          {settlement.param && (
            <Fact name="Field">
              <code>{settlement.param}</code>
            </Fact>
          )}
          {settlement.cause && <Fact name="Cause">{settlement.cause.replaceAll('_', ' ')}</Fact>}
        </dl>
      </Step>
      {told.losses && told.losses.length > 0 && (
        <Step title="Lost in translation">
          <Losses losses={told.losses} />
        </Step>
      )}
      <Step title="Billed">
        <Bill of={told} />
      </Step>
    </ol>
  )
}

/** Texts for the reason why a conversation left the account that has its prompt cache. */
const moves: Readonly<Record<string, string>> = {
  failed: 'its account failed',
  off: 'its account is disabled or has no key',
  cooling: 'its account is cooling',
  hanging: 'requests hang at its account',
  slow: 'its account is slow',
  preferred: 'an account of a better priority works again',
}

/** Texts for the reason why a chain asked a further model. */
const fallbacks: Readonly<Record<string, string>> = {
  capacity: 'all its upstream accounts were at their limit',
  unavailable: 'it could not be reached or failed',
  over_long: 'the prompt was too long for it',
  budget: 'it costs more than is left of the budget of the key',
  fit: 'it does not accept such a request',
}

function Step({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <li>
      <h3>{title}</h3>
      {children}
    </li>
  )
}

const stops: Readonly<Record<string, string>> = {
  seen: 'The client had seen a part of the answer, so no other account was asked.',
  final: 'Another account would have failed in the same way.',
  attempts: 'A request gets no more attempts.',
  budget: 'The budget of retries of the next upstream was used up.',
  nobody: 'No other account could be asked.',
}

function Attempts({ attempts, stopped }: Pick<Explanation, 'attempts' | 'stopped'>) {
  if (attempts === null) return <p class="small">The request is too old: only the ledger has it.</p>
  if (attempts.length === 0) return <p class="small">No upstream was asked.</p>
  const longest = Math.max(...attempts.map(({ ms }) => ms), 1)
  return (
    <>
      <ul class="attempts">
        {attempts.map(({ model, upstream, account, why, status, cause, text, ms }, at) => (
          <li key={at} class={cause ? 'failed' : 'done'}>
            <span class="who">
              {upstream}
              {account && <span class="small"> as {account}</span>}
              {model && <span class="small"> for {model}</span>}
            </span>
            <span class="small">{why.replaceAll('_', ' ')}</span>
            <span class={cause ? 'bad' : 'good'}>
              {status ?? ''} {cause ? cause.replaceAll('_', ' ') : 'answered'}
            </span>
            <span class="number">
              <Ms value={ms} />
            </span>
            <meter min={0} max={longest} value={ms} aria-hidden="true" />
            {text && <q class="small said">{text}</q>}
          </li>
        ))}
      </ul>
      {stopped && <p class="small">{stops[stopped]}</p>}
    </>
  )
}

export function Losses({ losses }: { losses: readonly { field: string; what: string; why: string }[] }) {
  return (
    <Table
      label="Fields"
      class="plain"
      rows={losses}
      keyOf={(_, at) => String(at)}
      columns={[
        {
          head: 'Field',
          by: ({ field }) => field,
          cell: ({ field }) => (
            <code>
              <Breakable text={field} />
            </code>
          ),
        },
        {
          head: 'What',
          kind: 'fit',
          by: ({ what }) => what,
          cell: ({ what }) => <span class={`fate ${what}`}>{what}</span>,
        },
        { head: 'Why', by: ({ why }) => why, cell: ({ why }) => <Words text={why} /> },
      ]}
    />
  )
}

const settled: Readonly<Record<string, string>> = {
  pending: 'It is under way.',
  waiting: 'Its debit is on its way to the ledger.',
  'in the ledger': 'Its debit is in the ledger.',
  spooled: 'Its debit is kept until the ledger can be written.',
  refused: 'Its debit could not be stored.',
  returned: 'Its debit was given back.',
  none: 'Nothing is billed.',
}

const sources: Readonly<Record<string, string>> = {
  final: 'by the model’s own figures',
  partial: 'by figures that came before its end',
  estimated: 'by our estimate',
  waived: 'waived',
}

/** The time after which a bill that is not in the books yet is read again, in ms. */
const unsettledMs = 1000

/**
 * Loads the explanation of a request with its bill. There is no event for a debit that is in the books, so the bill is
 * read again until it is there.
 */
export function useBill<Told>(path: string, stateOf: (told: Told) => Explanation['settlement']['state']) {
  const told = useLoad<Told>(path)
  const isOpen = told.data !== undefined && ['pending', 'waiting', 'spooled'].includes(stateOf(told.data))
  useAgain(() => isOpen && !told.isLoading && told.reload(), unsettledMs)
  return told
}

export function Bill({
  of: { usage, price, settlement },
}: {
  of: Pick<Explanation, 'usage' | 'price' | 'settlement'>
}) {
  const lines = usage && price ? priceLines(usage, price) : []
  const { state, amount, usage_source, flags } = settlement
  return (
    <>
      {lines.length > 0 && (
        <Table
          label="Bill"
          class="plain"
          rows={lines}
          keyOf={({ what }) => what}
          columns={[
            { head: 'What', by: ({ what }) => what, cell: ({ what }) => what },
            { head: 'Count', kind: 'number', by: ({ count }) => count, cell: ({ count }) => <Count value={count} /> },
            {
              head: 'Price',
              unit: 'per 1 M',
              kind: 'number',
              by: ({ rate }) => readCredits(rate),
              cell: ({ rate, isCall }) => `${rate}${isCall ? ' each' : ''}`,
            },
            { head: 'Credits', kind: 'number', by: ({ nanos }) => nanos, cell: ({ nanos }) => exactCredits(nanos) },
          ]}
          foot={
            amount !== null && (
              <tr>
                <th scope="row" colSpan={3}>
                  Billed
                </th>
                <td class="number">{exactCredits(readCredits(amount))}</td>
              </tr>
            )
          }
        />
      )}
      {usage && usage.reasoning_tokens > 0 && (
        <p class="small">
          <Count value={usage.reasoning_tokens} /> of the output was reasoning.
        </p>
      )}
      <p class="small">
        {settled[state] ?? state}
        {usage_source ? ` Counted ${sources[usage_source] ?? usage_source}.` : ''}
        {price ? ` Prices of version ${price.version}.` : ''}
      </p>
      {flags.length > 0 && <p class="small warn">Doubts: {flags.join(', ').replaceAll('_', ' ')}.</p>}
    </>
  )
}
