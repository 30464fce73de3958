import type { Command } from 'commander'
import { formatBudget } from '../accounts/budget.ts'
import type { AccountReader } from '../accounts/planless.ts'
import type { Config } from '../config/config.ts'
import { commandLine } from '../programs/shells.ts'
import { type GlobalOptions, usage } from './options.ts'
import { formatFields, note, print } from './print.ts'

type ExplainOptions = GlobalOptions & { groups?: string; email?: string }

/** Adds `sign-in explain`, which shows the rule of `sign_in` that applies to a person, and what the rule grants. */
export function addSignInCommand(program: Command): void {
  program
    .command('sign-in')
    .description('show which rule applies when people sign in')
    .command('explain')
    .description('show which rule of sign_in applies to a person in these groups or with this e-mail address')
    .option('--groups <names>', 'groups as the identity provider sends them, separated by commas')
    .option('--email <address>', 'a verified e-mail address')
    .action(async (_options, command: Command) => {
      const options = command.optsWithGlobals<ExplainOptions>()
      const { glanceAtConfig } = await import('../config/load.ts')
      const { mapPerson } = await import('../sign-in/mapping.ts')
      const { signIn, store } = glanceAtConfig(options)
      if (!signIn) throw usage('the configuration has no sign_in: nobody signs in')
      const groups = (options.groups ?? '').split(',').flatMap((name) => name.trim() || [])
      const found = mapPerson(signIn.rules, { groups, email: options.email?.trim() || undefined })
      const rule = 'rule' in found ? found.rule : undefined
      const told = {
        rule: 'number' in found ? found.number : null,
        rules: signIn.rules.length,
        account: rule?.account ?? null,
        role: rule?.role ?? null,
        models: rule?.models ?? null,
        budget: rule?.budget ? formatBudget(rule.budget) : null,
        requests_per_minute: rule?.requestsPerMinute ?? null,
      }
      if (rule) {
        const { lookAtAccounts } = await import('../store/open.ts')
        // If the store does not answer, the rule is shown without a look at its account.
        const warnings = await lookAtAccounts(store, (accounts) => warnOfRules(accounts, [rule])).catch(() => [])
        for (const { message } of warnings ?? []) note(command, message)
      }
      print(command, told, () => formatExplained(told))
      if (!rule) process.exitCode = 1
    })
}

/** Warns of rules that name an account which the store lacks. The people of such a rule cannot sign in. */
export async function warnOfRules(
  accounts: AccountReader,
  rules: readonly { account?: string | undefined }[],
): Promise<Config['warnings']> {
  const warnings: { path: string; message: string }[] = []
  for (const [at, { account }] of rules.entries()) {
    if (account === undefined || (await accounts.findAccount(account))) continue
    const cure = `run ${commandLine('posix', ['triwire', 'account', 'create', account])}, or name another account in the rule`
    const message = `There is no account ${account}, so the people of this rule cannot sign in: ${cure}.`
    warnings.push({ path: `sign_in.rules[${at}].account`, message })
  }
  return warnings
}

function formatExplained({ rule, rules, ...given }: Record<string, unknown>): string {
  if (rule === null) return `none of ${rules} rules fits: the sign-in is refused`
  const models = given['models'] as readonly string[] | null
  return formatFields({
    rule: `${rule} of ${rules}`,
    account: given['account'] ?? 'none: the console only',
    role: given['role'],
    models: models?.join(', ') ?? 'all',
    budget: given['budget'] ?? 'no limit',
    'requests a minute': given['requests_per_minute'] ?? "the account's",
  })
}
