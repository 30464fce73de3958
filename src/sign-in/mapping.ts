/*
 * Decides by `sign_in.rules` what a person who has signed in may do. The result depends only on the rules and on the
 * facts of the provider, so `triwire sign-in explain` can compute it without a sign-in.
 */

/** The conditions of a rule. A missing list is no condition. If both lists are set, both must match. */
type RuleConditions = {
  groups?: readonly string[] | undefined
  /** Domains in lower case. */
  emailDomains?: readonly string[] | undefined
}

/**
 * The facts about a person that rules use.
 * @property groups `too_many` if the provider sent a link instead of a list (Entra above about 200 groups)
 * @property email the address, unless the provider marked it as unverified
 */
export type PersonFacts = {
  groups: readonly string[] | 'too_many'
  email: string | undefined
}

/** Why no rule matches a person, with a text for them and their administrator. */
type MappingRefusal = { why: 'no_rule' | 'too_many_groups'; text: string }

/** The first rule that matches, with its number (the first rule has number 1); or a refusal. */
type Mapping<Rule extends RuleConditions> = { rule: Rule; number: number } | MappingRefusal

/**
 * Finds the first rule that matches. If the provider sent a link instead of the list of groups, the first rule that
 * needs groups refuses the person.
 */
export function mapPerson<Rule extends RuleConditions>(
  rules: readonly Rule[],
  { groups, email }: PersonFacts,
): Mapping<Rule> {
  const own = new Set(groups === 'too_many' ? [] : groups.map(nameOf))
  const domain = email === undefined ? undefined : domainOf(email)
  for (const [at, rule] of rules.entries()) {
    if (rule.emailDomains && !rule.emailDomains.some((one) => one === domain)) continue
    if (rule.groups && groups === 'too_many') return { why: 'too_many_groups', text: tooManyGroups }
    if (rule.groups && !rule.groups.some((one) => own.has(nameOf(one)))) continue
    return { rule, number: at + 1 }
  }
  const known = groups === 'too_many' || groups.length === 0 ? 'no groups' : `these groups: ${groups.join(', ')}`
  const address = email === undefined ? 'no verified e-mail address' : `the address ${email}`
  return { why: 'no_rule', text: `No rule of this gateway fits. Your company's sign-in sent ${known}, and ${address}.` }
}

const tooManyGroups =
  "Your company's sign-in sent a link instead of the list of your groups, because there are too many of them. An administrator there can have only the groups that are assigned to this application sent."

/** Removes a leading slash, which rules may omit. Some providers send groups as paths (Keycloak: `/developers`). */
function nameOf(group: string): string {
  return group.replace(/^\//, '')
}

function domainOf(email: string): string | undefined {
  return /@([^@]+)$/.exec(email)?.[1]?.toLowerCase()
}
