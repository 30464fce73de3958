import { type Command, InvalidArgumentError, Option } from 'commander'
import { parseCredits } from '../../accounts/credit.ts'

/** Adds the commands that import the settings of another gateway. */
export function addImportCommands(program: Command): void {
  const group = program.command('import').description("make a configuration of triwire's from that of another gateway")
  group
    .command('litellm <config>')
    .description("read LiteLLM's proxy configuration, write ours, and list what became of each setting")
    .option('--output <file>', 'write it into this file (default: print it, and the list on stderr)')
    .option('--force', 'with --output: replace a file that is there')
    .option('--prices <file>', "LiteLLM's or models.dev's price file, for models whose price is not known")
    .option('--unpriced-free', 'take over models without a known price, for nothing (default: they are left out)')
    .option(
      '--keys <file>',
      'also bring in its keys: answers of /key/list, /team/list and /user/list, or the tables as CSV; may be repeated',
      collect,
      [],
    )
    .addOption(
      new Option(
        '--teams <as>',
        'teams as accounts or as labels (default: those with a budget or limits are accounts)',
      ).choices(['accounts', 'labels']),
    )
    .option('--account <name>', 'the account of keys whose team is no account', 'litellm')
    .option(
      '--credit <credits>',
      'credit of each account, once (default: what is left of the budget of its team)',
      readCredit,
    )
    .option('--until <time>', 'when its keys end at the latest, such as 180d; none: never', '180d')
    .option('--dry-run', 'write nothing, and report what would be')
    .action(async (config: string, options, command: Command) => {
      const { importLitellm } = await import('./litellm.ts')
      await importLitellm(config, options, command)
    })
  for (const dialect of ['one-api', 'new-api'] as const)
    group
      .command(`${dialect} <tables>`)
      .description(`read the tables of ${dialect}: channels become models, users accounts, and tokens keys`)
      .requiredOption('--output <file>', 'write the configuration into this file, with the keys of providers')
      .option('--force', 'replace a file that is there')
      .option('--prices <file>', "LiteLLM's or models.dev's price file, for models whose price is not known")
      .option('--unpriced-free', 'take over models without a known price, for nothing (default: they are left out)')
      .option('--until <time>', 'when its keys end at the latest, such as 180d; none: never', '180d')
      .option('--dry-run', 'write nothing, and report what would be')
      .action(async (tables: string, options, command: Command) => {
        const { importOneApi } = await import('./one-api.ts')
        await importOneApi(dialect, tables, options, command)
      })
}

function collect(file: string, files: readonly string[]): string[] {
  return [...files, file]
}

function readCredit(text: string): bigint {
  try {
    const nanos = parseCredits(text)
    if (nanos > 0n) return nanos
  } catch {
    // Reported below, together with an amount of 0 or less.
  }
  throw new InvalidArgumentError('Write an amount of credits above 0, such as 100.')
}
