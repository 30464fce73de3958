/*
 * Decides by the rules of `sign_in.rules` what somebody may do who has signed in. The answer follows from the rules and from what
 * the identity provider says of the person. So `triwire sign-in explain` gives the same one without anybody signing in.
 */

/** The conditions of a rule. A list that is left out says nothing; if both are there, both must fit. */
type RuleConditions = {
  groups?: readonly string[] | undefined
  /** In lower case. */
  emailDomains?: readonly string[] | undefined
}

/**
 * The facts of a person that rules read.
 * @property groups `too_many` if the provider sent a link instead of a list (Entra above some 200 groups)
 * @property email verified, or not known to be unverified
 */
export type PersonFacts = {
  groups: readonly string[] | 'too_many'
  email: string | undefined
}

/** Why somebody has no rule, in words for themselves and for their administrator. */
type MappingRefusal = { why: 'no_rule' | 'too_many_groups'; text: string }

/** The first rule that fits, and its number from 1; or a refusal. */
type Mapping<Rule extends RuleConditions> = { rule: Rule; number: number } | MappingRefusal

/** Finds the first rule that fits. A list of groups that is missing is refused only where a rule would need it. */
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

/** Some providers send a group as a path (Keycloak: `/developers`). The slash at the front may be left out in a rule. */
function nameOf(group: string): string {
  return group.replace(/^\//, '')
}

function domainOf(email: string): string | undefined {
  return /@([^@]+)$/.exec(email)?.[1]?.toLowerCase()
}
