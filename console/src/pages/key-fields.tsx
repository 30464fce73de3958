import type { ComponentChildren } from 'preact'
import { spellBudget } from '../pure/account-limits.ts'
import { creditName } from '../session.ts'
import type { Key } from '../shapes.ts'
import { BudgetBar } from '../ui/badges.tsx'
import { Field } from '../ui/form.tsx'
import { Count } from '../ui/numbers.tsx'
import type { Column } from '../ui/table.tsx'

export const keyLabels = {
  label: 'Label',
  budget: 'Budget',
  rpm: 'Requests per minute',
  models: 'Models',
  person: 'Person',
  labels: 'Labels',
  may_choose: 'May choose',
  expires: 'Expires',
}
export type KeySaid = Record<keyof typeof keyLabels, string>
export const keyFields = Object.keys(keyLabels) as readonly (keyof KeySaid)[]
export const nothingSaid = Object.fromEntries(keyFields.map((name) => [name, ''])) as KeySaid

/** The limits of a key as form fields, for a new key and for an existing one. */
export function KeyFields(props: {
  said: KeySaid
  setSaid(said: KeySaid): void
  errorOf(name: string): string | undefined
  modelsList?: string
  expiresHint: string
}) {
  const { said, setSaid, errorOf, modelsList, expiresHint } = props
  const field = (name: keyof KeySaid) => ({
    name,
    label: keyLabels[name],
    value: said[name],
    onInput: (value: string) => setSaid({ ...said, [name]: value }),
    error: errorOf(name),
  })
  return (
    <>
      <Field autoFocus placeholder="ci" hint="a name for people, which rotation keeps" {...field('label')} />
      <div class="fields">
        <Field placeholder="5/day" hint={`${creditName()}: 5, 5/day, 20/week or 50/month`} {...field('budget')} />
        <Field inputMode="numeric" placeholder="60" hint="at most the limit of its account" {...field('rpm')} />
      </div>
      <div class="fields">
        <Field
          placeholder="all"
          hint="ids or prefixes such as small-*, separated by commas"
          {...(modelsList === undefined ? {} : { list: modelsList })}
          {...field('models')}
        />
        <Field placeholder="never" hint={expiresHint} {...field('expires')} />
      </div>
      <Field placeholder="nobody" hint="id, external id or name of the person who uses the key" {...field('person')} />
      <div class="fields">
        <Field placeholder="project=apollo" hint="labels of its requests, for reports" {...field('labels')} />
        <Field placeholder="project,team" hint="labels that its client may set in a request" {...field('may_choose')} />
      </div>
    </>
  )
}

/** Returns the current fields of a key as texts. */
export function saidOf({ label, budget, rpm, models, person, labels, may_choose, expires }: Key): KeySaid {
  return {
    label: label ?? '',
    budget: spellBudget(budget),
    rpm: rpm == null ? '' : String(rpm),
    models: models?.join(',') ?? '',
    person: person ?? '',
    labels: spellLabels(labels) ?? '',
    may_choose: may_choose?.join(',') ?? '',
    expires: expires ?? '',
  }
}

export function spellLabels(labels: Key['labels']): string | undefined {
  return labels
    ? Object.entries(labels)
        .map((label) => label.join('='))
        .join(',')
    : undefined
}

/** The limits of a key as columns of a list. The budget is not among them, because its spending stands beside it. */
export const limitColumns: readonly Column<Key>[] = [
  {
    head: 'Limit',
    by: ({ rpm }) => rpm,
    unit: 'per min',
    kind: 'number',
    wide: true,
    cell: ({ rpm }) => (rpm == null ? <span class="none">–</span> : <Count value={rpm} />),
  },
  {
    head: 'Models',
    by: ({ models }) => models?.join(),
    wide: true,
    cell: ({ models }) =>
      models ? <span title={models.join(', ')}>{models.join(', ')}</span> : <span class="none">all</span>,
  },
  {
    head: 'Person',
    by: ({ person, person_name }) => person_name ?? person,
    wide: true,
    cell: ({ person, person_name }) => person_name ?? person ?? <span class="none">–</span>,
  },
  {
    head: 'Labels',
    by: ({ labels }) => spellLabels(labels),
    wide: true,
    cell: ({ labels, may_choose }) => (
      <span title={may_choose ? `may choose ${may_choose.join(', ')}` : undefined}>{spellLabels(labels) ?? '–'}</span>
    ),
  },
]

type Limits = Pick<Key, 'budget' | 'rpm' | 'person_budget' | 'person_rpm'>

/** Shows the limits of a key, on its page and on that of its owner. */
export function LimitFacts({ of: { budget, rpm, person_budget, person_rpm } }: { of: Limits }) {
  return (
    <>
      <Fact name="Budget">
        <BudgetBar budget={budget} />
      </Fact>
      <Fact name="Requests per minute">{rpm == null ? 'same as its account' : <Count value={rpm} />}</Fact>
      {person_budget && (
        <Fact name="Budget of the person">
          <BudgetBar budget={person_budget} />
        </Fact>
      )}
      {person_rpm != null && (
        <Fact name="Requests per minute of the person">
          <Count value={person_rpm} />
        </Fact>
      )}
    </>
  )
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
