import { type Budget, type BudgetPeriod, formatBudget } from '../../accounts/budget.ts'
import { formatCredits, nanosMax } from '../../accounts/credit.ts'
import type { ForeignImport } from '../../accounts/foreign-keys.ts'
import {
  checkExternalId,
  checkMetadata,
  type Metadata,
  mayUse,
  metadataMax,
  modelsMax,
  parseModels,
  rateMax,
} from '../../accounts/key-bounds.ts'
import { digestKey, digestOfHex, mayHoldKey, withoutKeys } from '../../accounts/keys.ts'
import { labelWord } from '../../accounts/labels.ts'
import { isPersonField } from '../../accounts/person-rules.ts'
import { isShownWhole } from '../../accounts/shown-text.ts'
import { asObject } from '../../bytes/json.ts'
import { writeFirst } from '../../catalog/near-ids.ts'
import { commandLine } from '../../programs/shells.ts'
import type { ImportedSetting } from './import-report.ts'
import { type DumpRow, isTrue, type LitellmDump, memberOf } from './litellm-dump.ts'

type PlannedKey = ForeignImport['keys'][number]
type PlannedAccount = ForeignImport['accounts'][number]
type PlannedPerson = NonNullable<ForeignImport['persons']>[number]

/** A plan for importing keys of another gateway, with the labels that the configuration must declare for them. */
export type KeysPlan = {
  foreign: ForeignImport
  labels: Readonly<Record<string, readonly string[]>>
  settings: readonly ImportedSetting[]
  notes: readonly string[]
}

export type KeysOptions = {
  /** The account for keys without a team, and for keys whose team becomes a label. */
  account: string
  /**
   * How teams are imported. If undefined, teams with a budget or limits become accounts, and the others become labels.
   */
  teams: 'accounts' | 'labels' | undefined
  /** The credit of each account. If undefined, an account gets the rest of its team's budget. */
  creditNanos: bigint | undefined
  /** The present time in Unix milliseconds. */
  nowMs: number
  /** For each access group in LiteLLM's configuration (`model_info.access_groups`), its models. */
  groups: ReadonlyMap<string, readonly string[]>
  /** For each further name of a model in LiteLLM's configuration (`model_group_alias`), the name of the model. */
  aliases: ReadonlyMap<string, string>
}

/** Why fields of keys and teams are not carried over. A field is reported only if a row has a value for it. */
const leftFields: Readonly<Record<string, string>> = {
  tpm_limit: 'there is no limit of tokens per minute: set `--rpm` and a budget',
  tpd_limit: 'there is no limit of tokens per day: a budget per day bounds them',
  max_parallel_requests: 'requests at once are not counted by key',
  aliases: 'a key has no aliases: write `also` of a model',
  model_aliases: 'a team has no aliases: write `also` of a model',
  config: 'a key has no configuration of its own',
  router_settings: 'a key has no configuration of its own',
  model_max_budget: 'budgets are not by model',
  budget_limits: 'budgets are not by model',
  budget_fallbacks: 'a spent budget answers 402',
  soft_budget: '`webhooks` warn at 80 % of a budget',
  permissions: 'triwire reads no contents and has no such permissions',
  allowed_routes: 'a key may use each path of a model',
  allowed_cache_controls: 'triwire keeps no answers',
  guardrails: 'triwire does not read contents',
  policies: 'triwire does not read contents',
  object_permission_id: 'there are no tools and vector stores',
  organization_id: 'there is one level of accounts',
  project_id: 'keys have labels: triwire key set KEY --labels project=…',
  agent_id: 'keys have labels: triwire key set KEY --labels agent=…',
  auto_rotate: 'a rotation is asked for: triwire key rotate',
  members: 'people are made from the keys of users; sign-in has its own rules',
  members_with_roles: 'people are made from the keys of users; sign-in has its own rules',
  admins: 'people are made from the keys of users; sign-in has its own rules',
}

/** Plans the import of a dump without its expired and blocked keys. @throws Error with a message for people */
export function planLitellmKeys(dump: LitellmDump, options: KeysOptions): KeysPlan {
  return new KeysPlanning(dump, options).run()
}

class KeysPlanning {
  readonly #dump: LitellmDump
  readonly #options: KeysOptions
  readonly #accounts = new Map<string, PlannedAccount>()
  readonly #labels = new Set<string>()
  /** The values of the label `team`, also those of teams without a key. */
  readonly #teamLabels = new Set<string>()
  readonly #settings: ImportedSetting[] = []
  readonly #notes = new Set<string>()
  /** For each field that is not carried over: the keys, teams and users that have a value in this field. */
  readonly #leftFields = new Map<string, string[]>()
  /** The names of metadata members that are not carried over, each with the keys and teams that have the member. */
  readonly #leftMetadata = new Map<string, string[]>()
  readonly #users: ReadonlyMap<unknown, DumpRow>
  readonly #members: ReadonlyMap<string, DumpRow>
  /** For each user: the teams of all their keys ('' for no team), and the account of the last key. */
  readonly #homes = new Map<string, { account: string; teams: Set<string> }>()

  constructor(dump: LitellmDump, options: KeysOptions) {
    this.#dump = dump
    this.#options = options
    for (const text of dump.missing) this.#notes.add(text)
    this.#users = new Map(dump.users.map((row) => [row['user_id'], row]))
    this.#members = new Map(dump.members.map((row) => [memberOf(String(row['user_id']), String(row['team_id'])), row]))
  }

  run(): KeysPlan {
    // The order is fixed, so that a second import gives the same accounts to teams that share a name.
    const inOrder = this.#dump.teams.toSorted((a, b) => (String(a['team_id']) < String(b['team_id']) ? -1 : 1))
    const teams = new Map(inOrder.map((team) => [team['team_id'], this.#teamOf(team)]))
    const keys = this.#dump.keys.flatMap((row) => this.#keyOf(row, teams.get(row['team_id'])))
    const persons = [...this.#homes].flatMap(([user, home]) => this.#personOf(user, home))
    const idle = [...this.#users.keys()].filter((user) => !this.#homes.has(String(user))).length
    if (idle > 0)
      this.#settings.push({
        setting: `users without a key: ${idle}`,
        fate: 'left',
        why: 'people are made from the keys of users: triwire person import',
      })
    for (const { name, creditNanos } of this.#accounts.values())
      if (creditNanos === 0n)
        this.#notes.add(
          `the account ${name} has no credit, so its keys get 402: name --credit, or run ${commandLine('posix', ['triwire', 'account', 'credit', name])} 500 --reference TEXT`,
        )
    const free = [...this.#accounts.values()].filter(({ bounds }) => bounds.requestsPerMinute === undefined)
    if (free.length > 0) this.#notes.add(noteOfRates(free.map(({ name }) => name)))
    for (const [field, owners] of this.#leftFields)
      this.#settings.push({ setting: `${field} of ${writeFirst(owners)}`, fate: 'left', why: leftFields[field]! })
    for (const [name, owners] of this.#leftMetadata)
      this.#settings.push({
        setting: `metadata ${name} of ${writeFirst(owners)}`,
        fate: 'left',
        why: `metadata has ${metadataMax} names at most, with short texts that hold no key`,
      })
    return {
      foreign: { origin: 'litellm', accounts: [...this.#accounts.values()], persons, keys },
      labels: this.#labels.size > 0 ? { team: [...this.#labels] } : {},
      settings: this.#settings,
      notes: [...this.#notes],
    }
  }

  /** Notes the fields of a row that have a value but are not carried over. @param owner the key, team or user */
  #noteLeft(row: DumpRow, owner: string): void {
    // LiteLLM stores the aliases of a team in a table of their own. The CSV of the teams has only the id of their row.
    const aliases = asObject(row['litellm_model_table'])
    const all: DumpRow = { ...row, model_aliases: aliases ? aliases['model_aliases'] : row['model_id'] }
    for (const field of Object.keys(leftFields)) if (saysSomething(all[field])) push(this.#leftFields, field, owner)
  }

  /** Returns the row whose limits also apply to a user's key: the team member, or the user if the key has no team. */
  #ownerOf(user: string, team: string): DumpRow | undefined {
    return team === '' ? this.#users.get(user) : this.#members.get(memberOf(user, team))
  }

  /**
   * Plans a person. In LiteLLM a user has limits for keys without a team, and limits for keys in each team
   * (docs.litellm.ai/docs/proxy/users, 2026-10-10). Our limits of a person cover all keys, so a user with keys of both
   * kinds gets no limits.
   */
  #personOf(user: string, { account, teams }: { account: string; teams: ReadonlySet<string> }): PlannedPerson[] {
    const row = this.#users.get(user)
    const setting = `user ${user}`
    const owners = [...new Set(['', ...teams])].map((team) => this.#ownerOf(user, team))
    const owner = teams.size === 1 ? this.#ownerOf(user, [...teams][0]!) : undefined
    if (owners.some((one) => one !== owner && one && isLimited(one)))
      this.#settings.push({
        setting: `limits of ${setting}`,
        fate: 'left',
        why:
          teams.size > 1
            ? 'they hold for keys of one team, and bounds of a person for all keys: triwire person set --budget'
            : 'in LiteLLM they apply to keys without a team, of which the user has none',
      })
    for (const one of owners) if (one) this.#noteLeft(one, setting)
    const limits = owner && limitsOf(owner)
    const total = limits && boundOf(owner, limits, (text) => this.#notes.add(`${setting}: ${text}`))
    const name = textOf(row?.['user_alias'])?.trim()
    const email = textOf(row?.['user_email'])?.trim().toLowerCase()
    const person = {
      ...(name !== undefined && isPersonField('name', name) && !holdsKey(name) && { name }),
      ...(email !== undefined && isPersonField('email', email) && !holdsKey(email) && { email }),
      ...((total || limits?.rpm !== undefined) && { account }),
    }
    if (Object.keys(person).length === 0) return []
    const said = [total && `budget ${formatBudget(total)}`, limits?.rpm !== undefined && `${limits.rpm} rpm`]
    const why = ['a person', 'account' in person && `of ${account}`, ...said].filter(Boolean).join(', ')
    this.#settings.push({ setting, fate: 'carried', why })
    const rate = limits?.rpm !== undefined && { requestsPerMinute: limits.rpm }
    return [{ externalId: user, ...person, bounds: { ...(total && { budget: total }), ...rate } }]
  }

  /** Returns the metadata whose values are short texts. Lists of texts are joined. Other values are only noted. */
  #metadataOf(row: DumpRow, owner: string): { metadata?: Metadata } {
    const kept: Record<string, string> = {}
    for (const [name, value] of Object.entries(asObject(row['metadata']) ?? {})) {
      if (!saysSomething(value) && value !== false) continue
      const list = Array.isArray(value) && value.every((one) => typeof one === 'string') ? value.join() : undefined
      const text = list ?? (typeof value === 'object' ? undefined : String(value))
      try {
        if (text === undefined || holdsKey(name) || holdsKey(text) || Object.keys(kept).length === metadataMax)
          throw new RangeError()
        kept[name] = checkMetadata({ [name]: text })[name]!
      } catch {
        push(this.#leftMetadata, holdsKey(name) ? 'that may be a key' : name, owner)
      }
    }
    return Object.keys(kept).length > 0 ? { metadata: checkMetadata(kept) } : {}
  }

  #teamOf(row: DumpRow): TeamPlan {
    const id = String(row['team_id'])
    const alias = textOf(row['team_alias']) ?? id
    const limits = limitsOf(row)
    const hasLimits = isLimited(row)
    const isAccount = this.#options.teams === undefined ? hasLimits : this.#options.teams === 'accounts'
    this.#noteLeft(row, `team ${alias}`)
    const team = { isBlocked: whyRefused(row) !== undefined, models: modelsOf(row['models']) }
    if (isAccount) {
      const name = this.#freeName(alias, id)
      const notes: string[] = []
      const { budget, left } = budgetOf(row, limits, (text) => notes.push(`team ${name}: ${text}`))
      const credit = this.#options.creditNanos ?? left ?? 0n
      // A budget that is not renewed here is the credit of the account, unless the credit of all accounts is given.
      if (budget && !budget.per && this.#options.creditNanos !== undefined)
        this.#settings.push({
          setting: `max_budget of team ${alias}`,
          fate: 'replaced',
          why: `by --credit, the account ${name} may spend ${formatCredits(credit)} credits`,
        })
      else for (const text of notes) this.#notes.add(text)
      if (this.#options.creditNanos === undefined && left !== undefined && budget?.per !== undefined) {
        const grant = budget.per === 'month' ? formatBudget(budget) : 'CREDITS/month'
        this.#notes.add(
          `team ${name}: ${formatCredits(left)} are booked once; for credit in each month: ${commandLine('posix', ['triwire', 'account', 'grant', name])} ${grant}`,
        )
      }
      this.#settings.push({
        setting: `team ${alias}`,
        fate: 'carried',
        why: `the account ${name}, with ${formatCredits(credit)} credits`,
      })
      this.#accounts.set(name, {
        ...{
          name,
          state: team.isBlocked ? 'suspended' : 'active',
          creditNanos: credit,
          reference: `import:litellm:${id}`,
        },
        bounds: {
          ...(budget?.per && { budget }),
          ...(limits.rpm !== undefined && { requestsPerMinute: limits.rpm }),
          ...(isExternalId(id) && { externalId: id }),
          ...this.#metadataOf(row, `team ${alias}`),
        },
      })
      return { ...team, account: name, label: undefined }
    }
    const label = this.#freeLabel(alias, id)
    if (hasLimits)
      this.#settings.push({
        setting: `limits of team ${alias}`,
        fate: 'left',
        why: 'a label has no limits: --teams accounts',
      })
    if (saysSomething(row['metadata']))
      this.#settings.push({
        setting: `metadata of team ${alias}`,
        fate: 'left',
        why: 'a label has no metadata: --teams accounts',
      })
    this.#settings.push({ setting: `team ${alias}`, fate: 'carried', why: `the label team=${label}` })
    return { ...team, account: undefined, label }
  }

  /** Returns a name for a team's account. If another team has the same name, the team's id is added. */
  #freeName(alias: string, id: string): string {
    const name = isShownWhole(alias.trim(), 60) ? alias.trim() : id.slice(0, 60)
    const isTaken = (name: string) => this.#accounts.has(name) || name === this.#options.account
    const free = [name, ...[8, 36].map((chars) => `${name} (${id.slice(0, chars)})`)].find((one) => !isTaken(one))
    if (free === undefined) throw new Error(`two teams are ${name}: give one of them another name`)
    return free
  }

  /** Returns a value of the label `team`. If another team has the same value, the team's id is added. */
  #freeLabel(alias: string, id: string): string {
    const [name, own] = [toLabelWord(alias), toLabelWord(id)]
    const withId = [8, 36].map((chars) => `${name.slice(0, 63 - chars)}-${own.slice(0, chars)}`)
    const isFree = (word: string) => labelWord.test(word) && !this.#teamLabels.has(word)
    const free = [name, ...withId, own].map((word) => word.slice(0, 64)).find(isFree)
    if (free === undefined) throw new Error(`two teams are ${alias}: give one of them another name`)
    this.#teamLabels.add(free)
    return free
  }

  #keyOf(row: DumpRow, team: TeamPlan | undefined): PlannedKey[] {
    const { nowMs, account: usual, creditNanos } = this.#options
    const token = String(row['token'])
    const digest = digestOfHex(token) ?? (token.startsWith('sk-') ? digestKey(token) : undefined)
    const shown = textOf(row['key_name']) ?? ''
    const prefix = /^sk-\.{3}[\w-]{1,8}$/.test(shown) ? shown : `litellm-${(digest ?? '').slice(0, 8)}`
    const alias = textOf(row['key_alias'])?.trim()
    const setting = `key ${alias ?? prefix}`
    const leave = (why: string): [] => {
      this.#settings.push({ setting, fate: 'left', why })
      return []
    }
    if (digest === undefined) return leave('its token is no SHA-256 digest in hex')
    if (row['team_id'] === 'litellm-dashboard') return leave("it signs in to LiteLLM's own pages")
    const refused = whyRefused(row)
    if (refused !== undefined) return leave(`${refused}, so it is refused here too`)
    if (team?.isBlocked && team.account === undefined) return leave('its team is blocked, so it is refused here too')
    const ownExpiresMs = momentOf(row['expires'])
    if (ownExpiresMs !== undefined && ownExpiresMs <= nowMs) return leave('it has expired')
    const user = textOf(row['user_id'])
    const home = textOf(row['team_id']) ?? ''
    const owner = user === undefined ? undefined : this.#ownerOf(user, home)
    const barred = owner && whyRefused(owner)
    if (barred !== undefined) return leave(`LiteLLM refuses its user (${barred}), so it is refused here too`)
    const name = team?.account ?? usual
    if (!this.#accounts.has(name))
      this.#accounts.set(name, {
        ...{ name, state: 'active', bounds: {}, creditNanos: creditNanos ?? 0n, reference: `import:litellm:${name}` },
      })
    if (row['team_id'] && !team)
      this.#notes.add(`${setting}: its team ${row['team_id']} is not in the dump, so its limits are not known`)
    const limits = limitsOf(row)
    const total = boundOf(row, limits, (text) => this.#notes.add(`${setting}: ${text}`))
    const label = alias !== undefined && isShownWhole(alias) && !holdsKey(alias) ? alias : undefined
    if (alias !== undefined && label === undefined)
      this.#notes.add(`${setting}: its name cannot be a label, so it has none`)
    const externalId =
      user !== undefined && user !== 'default_user_id' && isShownWhole(user, 200) && !holdsKey(user) ? user : undefined
    if (externalId !== undefined) {
      const known = this.#homes.get(externalId)
      this.#homes.set(externalId, { account: name, teams: new Set([...(known?.teams ?? []), home]) })
    }
    const models = this.#modelsOfKey(row, home === '' ? modelsOf(owner?.['models']) : team?.models, setting)
    if (team?.label !== undefined) this.#labels.add(team.label)
    this.#noteLeft(row, setting)
    const said = [
      total && `budget ${formatBudget(total)}`,
      limits.rpm !== undefined && `${limits.rpm} rpm`,
      models && `${models.length} models`,
    ]
    this.#settings.push({ setting, fate: 'carried', why: [`account ${name}`, ...said.filter(Boolean)].join(', ') })
    return [
      {
        ...{ digest, prefix, label, account: name, externalId, ownExpiresMs },
        expiresMs: ownExpiresMs,
        bounds: {
          ...(total && { budget: total }),
          ...(limits.rpm !== undefined && { requestsPerMinute: limits.rpm }),
          ...(models && { models }),
          ...(team?.label !== undefined && { labels: [`team=${team.label}`] }),
          ...this.#metadataOf(row, setting),
        },
      },
    ]
  }

  /**
   * Returns the models that both the key and its team allow. If the key has no team, its user counts instead of the
   * team. LiteLLM checks both (`can_team_access_model`, `can_user_call_model`). Undefined means all models.
   */
  #modelsOfKey(row: DumpRow, outer: readonly string[] | undefined, setting: string): string[] | undefined {
    const named = modelsOf(row['models'])
    const own = named?.includes('all-team-models') ? undefined : this.#withoutGroups(named)
    const ofTeam = this.#withoutGroups(outer)
    if (own === undefined && ofTeam === undefined) return undefined
    const models = [
      ...(own ?? []).filter((model) => mayUse(ofTeam, model)),
      ...(ofTeam ?? []).filter((model) => mayUse(own, model) && !own?.includes(model)),
    ]
    const right = models.filter((model) => {
      try {
        return parseModels(model).length === 1
      } catch {
        this.#notes.add(`${setting}: the model ${model} cannot be named here, so the key may not use it`)
        return false
      }
    })
    if (right.length > modelsMax)
      this.#notes.add(`${setting}: a key names ${modelsMax} models, so the last ones are left out: use patterns`)
    // If no model of the key exists here, the key is allowed no model. An empty list would allow all models.
    return right.length > 0 ? right.slice(0, modelsMax) : ['no-default-models']
  }

  /**
   * Replaces access groups with their models, and adds further names of models. With LiteLLM, who may use a model may
   * use its aliases too (`_can_object_call_model`).
   */
  #withoutGroups(models: readonly string[] | undefined): string[] | undefined {
    const named = models?.flatMap((one) => this.#options.groups.get(one) ?? [one])
    const isMissing = (alias: string, model: string) => mayUse(named, model) && !mayUse(named, alias)
    const also = [...this.#options.aliases].filter(([alias, model]) => isMissing(alias, model))
    return named && [...new Set([...named, ...also.map(([alias]) => alias)])]
  }
}

/** Replaces the characters that a label cannot have. The result can be empty or too long. */
function toLabelWord(text: string): string {
  return text.replace(/[^A-Za-z0-9._:/@+-]/g, '-').replace(/^[^A-Za-z0-9]+/, '')
}

type TeamPlan = {
  isBlocked: boolean
  models: readonly string[] | undefined
  account: string | undefined
  label: string | undefined
}

/** Returns a note about accounts without a rate limit in the other gateway. @param names at least one */
export function noteOfRates(names: readonly string[]): string {
  const which =
    names.length === 1 ? `the account ${names[0]}` : `each of ${names.length} accounts, such as ${names[0]},`
  return `${which} may make as many requests a minute as limits.requests_per_minute says, with all its keys: 300 if it is not set. For more: triwire account set NAME --rpm 3000`
}

function push(lists: Map<string, string[]>, name: string, owner: string): void {
  const owners = lists.get(name)
  if (owners) owners.push(owner)
  else lists.set(name, [owner])
}

/** Reads a list, or a text such as `['a', 'b']`. @returns undefined if all models are allowed */
function modelsOf(value: unknown): string[] | undefined {
  const list = typeof value === 'string' ? value.match(/[^\s,'"[\]{}]+/g) : value
  const models = Array.isArray(list) ? list.filter((one) => typeof one === 'string' && one !== '') : []
  return models.length === 0 || models.some((one) => ['*', 'all-proxy-models'].includes(one)) ? undefined : models
}

/**
 * Returns why LiteLLM refuses all requests of a key or a team, or undefined. A limit of 0 is one reason (litellm
 * 1.110, `parallel_request_limiter_v3`).
 */
function whyRefused(row: DumpRow): string | undefined {
  if (isTrue(row['blocked'])) return 'it is blocked'
  const zero = ['rpm_limit', 'tpm_limit', 'max_parallel_requests'].find((name) => limitOf(row, name) === 0)
  return zero && `its ${zero} is 0`
}

/**
 * Returns a limit of a key or a team, or else the limit of its budget (`budget_id`). A limit below 0 counts as 0.
 * @throws Error if the value is not a number, because the key would have no limit
 */
function limitOf(row: DumpRow, name: string): number | undefined {
  const value = [row[name], asObject(row['litellm_budget_table'])?.[name]].find((one) => (one ?? '') !== '')
  if (value === undefined) return undefined
  const number = Number(value)
  if (Number.isNaN(number))
    throw new Error(`${name} of a key or a team is ${JSON.stringify(value)}, which is no number`)
  return Math.max(0, number)
}

type DumpLimits = { budget: number | undefined; rpm: number | undefined; duration: string | undefined }

function limitsOf(row: DumpRow): DumpLimits {
  const rpm = limitOf(row, 'rpm_limit')
  return {
    budget: limitOf(row, 'max_budget'),
    rpm: rpm === undefined ? undefined : Math.min(rateMax, Math.max(1, Math.round(rpm))),
    duration: textOf(row['budget_duration']) ?? textOf(asObject(row['litellm_budget_table'])?.['budget_duration']),
  }
}

/** Whether a team, a user or a member has a limit. */
function isLimited(row: DumpRow): boolean {
  return ['max_budget', 'rpm_limit', 'tpm_limit', 'tpd_limit'].some((name) => limitOf(row, name) !== undefined)
}

/** Whether a text may contain a key of triwire or LiteLLM. */
function holdsKey(text: string): boolean {
  return mayHoldKey(text) || withoutKeys(text) !== text
}

function isExternalId(id: string): boolean {
  try {
    return checkExternalId(id) === id
  } catch {
    return false
  }
}

/** Returns the budget of a key or a person. If a budget never renews, only its unspent rest is returned. */
function boundOf(row: DumpRow, limits: DumpLimits, note: (text: string) => void): Budget | undefined {
  const { budget, left } = budgetOf(row, limits, note)
  return left === undefined || budget?.per ? budget : { nanos: left > 0n ? left : 1n, per: undefined }
}

/** Returns a budget and its unspent rest. A period that triwire does not have is replaced by a stricter one. */
function budgetOf(
  row: DumpRow,
  { budget: credits, duration }: DumpLimits,
  note: (text: string) => void,
): { budget: Budget | undefined; left: bigint | undefined } {
  if (credits === undefined) return { budget: undefined, left: undefined }
  const nanos = nanosOf(credits)
  const rest = nanos - nanosOf(numberOf(row['spend']) ?? 0)
  const left = rest > 0n ? rest : 0n
  const at = nanos > 0n ? nanos : 1n
  if (duration === undefined) return { budget: { nanos: at, per: undefined }, left }
  const days = daysOf(duration)
  const per = (
    [
      ['day', 1],
      ['week', 7],
      ['month', 31],
    ] as const
  ).find(([, most]) => days <= most)?.[0] as BudgetPeriod | undefined
  if (![1, 7, 28, 30, 31].includes(days))
    note(
      `its budget is renewed after ${duration}; here ${formatBudget({ nanos: at, per })}${per ? '' : ' for good'}, which is stricter`,
    )
  if (per !== undefined) note('its budget begins anew here with the current period')
  return { budget: { nanos: per === undefined ? (left > 0n ? left : 1n) : at, per }, left }
}

const unitDays: Readonly<Record<string, number>> = { s: 1 / 86_400, m: 1 / 1_440, h: 1 / 24, d: 1, w: 7, mo: 31 }
const namedDays: Readonly<Record<string, number>> = { daily: 1, weekly: 7, monthly: 31 }

/** Returns the days of a duration in LiteLLM's form, such as `30d`, `24h` or `1mo`. Other forms count as infinite. */
function daysOf(duration: string): number {
  const [, count, unit] = /^(\d+)\s*(mo|[smhdw])$/.exec(duration) ?? []
  return namedDays[duration] ?? (unit === undefined ? Number.POSITIVE_INFINITY : Number(count) * unitDays[unit]!)
}

function nanosOf(credits: number): bigint {
  const nanos = BigInt(Math.round(Math.max(0, Math.min(credits, 9e9)) * 1e6)) * 1_000n
  return nanos > nanosMax ? nanosMax : nanos
}

/** Reads a time as Unix milliseconds. LiteLLM's times without a zone are UTC. @throws Error for any other text */
function momentOf(value: unknown): number | undefined {
  if ((value ?? '') === '') return undefined
  // PostgreSQL writes the offset of a time zone without minutes, as in +00.
  const text = String(value).replace(/(:\d\d(?:\.\d+)?[+-]\d\d)$/, '$1:00')
  const ms = Date.parse(/[Zz]|[+-]\d\d:?\d\d$/.test(text) ? text : `${text.replace(' ', 'T')}Z`)
  if (Number.isNaN(ms)) throw new Error(`a key expires at ${JSON.stringify(value)}, which is no time`)
  return ms
}

function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : undefined
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function saysSomething(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === '' || value === '{}') return false
  return typeof value !== 'object' || Object.values(value).some((one) => one !== null)
}
