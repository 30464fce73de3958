import { type Command, InvalidArgumentError, Option } from 'commander'
import { parseCredits } from '../../accounts/credit.ts'

/** Adds the commands that import the settings of another gateway. */
export function addImportCommands(program: Command): void {
  const group = program.command('import').description('make a configuration from that of another gateway')
  group
    .command('litellm')
    .argument('<config>', "the configuration file of LiteLLM's proxy")
    .description("convert the configuration of LiteLLM's proxy, and report what happened to each setting")
    .option('--output <file>', 'write the configuration into this file (default: print it, and the report on stderr)')
    .option('--force', 'with --output: replace an existing file')
    .option('--prices <file>', 'a price file of LiteLLM or models.dev, for models without a known price')
    .option(
      '--unpriced-free',
      'import models without a known price, and serve them free of charge (default: leave them out)',
    )
    .option(
      '--keys <file>',
      'also import the keys: a file with the answers of /key/list, /team/list and /user/list, or the tables as CSV; the option can be repeated',
      collect,
      [],
    )
    .addOption(
      new Option(
        '--teams <as>',
        'import teams as accounts or as labels (default: teams with a budget or limits become accounts)',
      ).choices(['accounts', 'labels']),
    )
    .option('--account <name>', 'the account for keys whose team does not become an account', 'litellm')
    .option(
      '--credit <credits>',
      "the credit that each account gets once (default: the unspent part of its team's budget)",
      readCredit,
    )
    .option('--until <time>', 'when the imported keys expire at the latest, such as 180d; "none": never', '180d')
    .option('--dry-run', 'write nothing, and report what would be written')
    .action(async (config: string, options, command: Command) => {
      const { importLitellm } = await import('./litellm.ts')
      await importLitellm(config, options, command)
    })
  for (const dialect of ['one-api', 'new-api'] as const)
    group
      .command(dialect)
      .argument('<tables>', `a file with the tables of ${dialect}`)
      .description(
        `convert the tables of ${dialect}: channels become models, users become accounts, and tokens become keys`,
      )
      .requiredOption('--output <file>', 'the file for the configuration, which will contain the keys of providers')
      .option('--force', 'replace an existing file')
      .option('--prices <file>', 'a price file of LiteLLM or models.dev, for models without a known price')
      .option(
        '--unpriced-free',
        'import models without a known price, and serve them free of charge (default: leave them out)',
      )
      .option('--until <time>', 'when the imported keys expire at the latest, such as 180d; "none": never', '180d')
      .option('--dry-run', 'write nothing, and report what would be written')
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
    // A text that is not an amount gets the error below, too.
  }
  throw new InvalidArgumentError('Write an amount of credits above 0, such as 100.')
}
