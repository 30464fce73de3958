import { z } from 'zod'
import { type Budget, parseBudget } from '../accounts/budget.ts'
import { parseModels, rateMax } from '../accounts/key-bounds.ts'
import { type SignInRole, signInRoles } from '../accounts/sign-in/rows.ts'
import { count, filled, flag, oneOf, text } from '../catalog/kinds.ts'
import { noProxy, parseProxy } from './egress.ts'
import * as field from './fields.ts'
import { isLoopback, Secret } from './values.ts'

/* The settings of `sign_in`: sign-in at an organisation's identity provider (rulings Y19, Y20, Y22). */

/** Roles that need no account, because people with them only use the console. */
const operatorRoles: ReadonlySet<SignInRole> = new Set<SignInRole>(['admin', 'finance', 'viewer'])

const words = (what: string) =>
  z
    .array(filled('must not be empty'), { error: `must be a list of ${what}` })
    .min(1, { error: `must name one of the ${what}; leave it out to ask for none` })

/** Makes a text field that is read by a parser of `src/accounts`. The parser's error becomes the message. */
const parsed = <T>(
  example: string,
  parse: (text: string) => T,
  kind: z.ZodType<string> = text(`must be a text such as "${example}"`),
) =>
  kind.transform((value, context) => {
    try {
      return parse(value)
    } catch (error) {
      field.complain(context, `must be a text such as "${example}". ${(error as Error).message}`)
      return z.NEVER
    }
  })

const modelsCure = 'must be a list of ids, or a text such as "large,small-*"'

/** Models as a list, or as one text with commas, as in commands. */
const modelList = z
  .union([text(), z.array(text()).min(1, { error: modelsCure })], { error: modelsCure })
  .transform((models) => [models].flat().join())

const rule = z
  .strictObject({
    groups: words('groups')
      .optional()
      .describe('The rule applies to people in one of these groups, spelled as the identity provider does.'),
    email_domains: words('domains')
      .superRefine((domains, context) => {
        for (const [index, domain] of domains.entries())
          if (!/^[a-z0-9-]+(\.[a-z0-9-]+)+$/i.test(domain))
            field.complain(context, 'must be the part after the @, such as example.com', [index])
      })
      .transform((domains) => domains.map((domain) => domain.toLowerCase()))
      .optional()
      .describe(
        'The rule applies to people whose verified e-mail address has one of these domains. With `groups`, both conditions must be met.',
      ),
    account: filled('must be the name or the id of an account of triwire')
      .optional()
      .describe(
        'The account that pays for them, by name or id. Only operators (`admin`, `finance`, `viewer`) need none.',
      ),
    role: oneOf(signInRoles).prefault('member').describe('The role of these people.'),
    models: parsed('large,small-*', parseModels, modelList)
      .optional()
      .describe('The models that their sessions may use, such as `[large, small-*]`. Default: all models.'),
    budget: parsed<Budget>('50/month', parseBudget)
      .optional()
      .describe('What each person may spend with all sessions and keys, such as `50/month`. Default: no limit.'),
    requests_per_minute: count(1, rateMax)
      .optional()
      .describe('The most requests of each person in a minute. Default: only the limit of the account applies.'),
  })
  .superRefine(({ groups, email_domains: domains, account, role }, context) => {
    if (groups === undefined && domains === undefined)
      field.complain(context, 'must have `groups` or `email_domains`: without one it would let everybody in')
    if (account === undefined && !operatorRoles.has(role))
      field.complain(context, 'must name the account that pays for them', ['account'])
  })

const limits = z.strictObject({
  codes: count(1)
    .prefault(60)
    .describe('The most wrong codes from one address in 600 seconds, including those of the identity provider.'),
  grants: count(1)
    .prefault(300)
    .describe('The most sign-ins from one address that were begun in the last 600 seconds and not finished.'),
})

/** The setting `sign_in`. */
export const signInSchema = z
  .strictObject({
    issuer: text()
      .superRefine((value, context) => field.complain(context, issuerMistake(value)))
      .describe('The issuer URL of the OpenID Connect provider, `https://…`. `http://` is for loopback only.'),
    client_id: filled('must not be empty').describe('The client id of the gateway at the identity provider.'),
    client_secret: filled('must not be empty')
      .optional()
      .describe(
        'The client secret of the gateway at the identity provider. Use `client_secret_file` instead to keep it out of this file. A public client has no secret.',
      ),
    client_secret_file: field.filePath.optional().describe('A file that contains the client secret and nothing else.'),
    ...field.egressKeys('the identity provider'),
    groups_claim: filled('must not be empty')
      .prefault('groups')
      .describe("The claim with a person's groups. A dot selects a member, as in `realm_access.roles`."),
    rules: z
      .array(rule, { error: 'must be a list of rules' })
      .min(1, { error: 'must have a rule: without one nobody can sign in' })
      .describe(
        'The rules for who may sign in, and with which role. The first rule that matches a person applies. A person whom no rule matches is refused.',
      ),
    offline: field
      .duration('0ms', '24d')
      .prefault('8h')
      .describe(
        'How long sessions continue while the identity provider does not answer. `0`: each refresh must be confirmed by the identity provider.',
      ),
    access: field
      .duration('6m', '24h')
      .prefault('60m')
      .describe('How long an access token is valid. Agents get the next token by themselves.'),
    idle: field
      .duration('1h', '365d')
      .prefault('30d')
      .describe('A session ends if nothing was refreshed for this time.'),
    absolute: field.duration('1h', '365d').prefault('90d').describe('A session ends this long after its sign-in.'),
    limits: limits.prefault({}).describe('Limits for each client address (see `trusted_proxies`).'),
    show_balance: flag
      .prefault(false)
      .describe(
        'Whether agents, when they show the usage of a person without a budget, also show the balance of the account.',
      ),
  })
  .superRefine((settings, context) => {
    const { access, idle, absolute } = settings
    if (settings.client_secret !== undefined && settings.client_secret_file !== undefined)
      field.complain(context, 'is there beside `client_secret`: set one of them', ['client_secret_file'])
    if (idle <= access) field.complain(context, 'must be longer than `access`', ['idle'])
    if (absolute < idle) field.complain(context, 'must not be shorter than `idle`', ['absolute'])
  })

type SignInEntry = z.output<typeof signInSchema>

/** A rule: the people to whom it applies, and what it grants them. */
type SignInRule = {
  groups: readonly string[] | undefined
  /** Domains in lower case. */
  emailDomains: readonly string[] | undefined
  /** The name or id of the account that pays for these people. Undefined only for rules of operators. */
  account: string | undefined
  role: SignInRole
  models: readonly string[] | undefined
  budget: Budget | undefined
  requestsPerMinute: number | undefined
}

/** The settings of sign-in. */
export type SignInSettings = {
  issuer: string
  clientId: string
  /** The secret of our client at the provider; undefined for a public client, which has no secret. */
  clientSecret: Secret | undefined
  /** `none` stands for no proxy. If undefined, the proxy of the environment is used. */
  proxy: Secret | 'none' | undefined
  /** Certificates in PEM that are trusted instead of the system's. */
  ca: string | undefined
  groupsClaim: string
  rules: readonly SignInRule[]
  offlineMs: number
  accessMs: number
  idleMs: number
  absoluteMs: number
  /** The most invalid codes, and the most unfinished sign-ins of programs, from one address in 600 s. */
  limits: { codes: number; grants: number }
  showBalance: boolean
}

/** Converts the settings of the file. @param texts the contents of `client_secret_file` and `ca_file` */
export function readSignIn(
  entry: SignInEntry,
  { secret, ca }: Record<'secret' | 'ca', string | undefined>,
): SignInSettings {
  const { proxy } = entry
  const { client_secret: written = secret?.trim() } = entry
  return {
    issuer: entry.issuer,
    clientId: entry.client_id,
    clientSecret: written === undefined ? undefined : new Secret(written),
    proxy: proxy === undefined || proxy === noProxy ? proxy : new Secret(parseProxy(proxy)),
    ca,
    groupsClaim: entry.groups_claim,
    rules: entry.rules.map(({ email_domains: emailDomains, requests_per_minute: requestsPerMinute, ...rest }) => ({
      groups: rest.groups,
      emailDomains,
      account: rest.account,
      role: rest.role,
      models: rest.models,
      budget: rest.budget,
      requestsPerMinute,
    })),
    offlineMs: entry.offline,
    accessMs: entry.access,
    idleMs: entry.idle,
    absoluteMs: entry.absolute,
    limits: entry.limits,
    showBalance: entry.show_balance,
  }
}

/** Returns the settings of the provider. A change of these takes effect only after a restart. */
export function providerOf({ issuer, clientId, clientSecret, proxy, ca, groupsClaim }: SignInSettings) {
  return { issuer, clientId, clientSecret, proxy, ca, groupsClaim }
}

/**
 * Joins the settings of the provider into one text. Two such texts are compared to find a change. The text contains a
 * secret.
 */
export function spellSignIn(settings: SignInSettings | undefined): string {
  if (!settings) return ''
  const { clientSecret, proxy, ...rest } = providerOf(settings)
  const way = typeof proxy === 'string' ? proxy : proxy?.reveal()
  return JSON.stringify([rest, clientSecret?.reveal(), way])
}

function issuerMistake(value: string): string | undefined {
  const url = URL.parse(value)
  const isWeb = url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  if (!isWeb || /[?#\\\s]/.test(value))
    return 'must be the https:// URL of an issuer, such as https://login.example.com'
  return isSecured(value) ? undefined : 'must begin with https://: plain http:// is for loopback only'
}

/** Whether nobody on the network can read what is sent to a URL, because it is https: or on this machine. */
function isSecured(value: string): boolean {
  const { protocol, hostname } = new URL(value)
  return protocol === 'https:' || isLoopback({ host: hostname.replace(/^\[|\]$/g, ''), port: 0 })
}

/** Returns what to change about `api_url` so that people can sign in there. Undefined if nothing must change. */
export function signInAddressMistake(apiUrl: string | undefined, listenHost: string): string | undefined {
  if (apiUrl === undefined)
    return isLoopback({ host: listenHost, port: 0 })
      ? undefined
      : 'is needed with `sign_in` and `own_pages`: write where clients reach the gateway, such as https://gateway.example'
  return isSecured(apiUrl)
    ? undefined
    : 'must begin with https:// with `sign_in` and `own_pages`: plain http:// is for loopback only'
}
