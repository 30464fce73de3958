import { type Command, InvalidArgumentError, Option } from 'commander'
import { modelWireNames } from '../../catalog/wire-names.ts'

/** Adds the commands of the catalog. Each asks before it writes, and has `--yes` and `--dry-run` (ruling X15). */
export function addCatalogCommands(program: Command): void {
  const catalog = program.command('catalog').description('put models and their figures into the configuration file')
  withConsent(
    catalog
      .command('add [preset] [id...]')
      .description("add a provider's models, with limits and dated prices; without a preset, list them")
      .option('--upstream <name>', "what the provider's entry of upstreams is called (default: as the preset)")
      .option(
        '--price <kind=credits>',
        'what one model costs, where it is not known or yours differs; once for each kind',
        readPrice,
        {},
      ),
  ).action(async (preset: string | undefined, ids: string[], options, command: Command) => {
    const { addPreset } = await import('./add.ts')
    await addPreset(preset, ids, options, command)
  })
  withConsent(
    catalog
      .command('import <file> [id...]')
      .description(
        "take figures from LiteLLM's or models.dev's price file: add the models named, or update all known ones",
      )
      .option('--upstream <name>', 'the entry of upstreams that serves what is added, or whose models are updated')
      .addOption(
        new Option('--wire <wire>', "what its upstream speaks (default: the provider's own)").choices(modelWireNames),
      )
      .option('--profile <name>', "its upstream's quirks (default: the provider's own)"),
  ).action(async (file: string, ids: string[], options, command: Command) => {
    const { importPrices } = await import('./import.ts')
    await importPrices(file, ids, options, command)
  })
  addUpdate(catalog)
}

function addUpdate(catalog: Command): void {
  withConsent(
    catalog
      .command('update')
      .description('put a newer data file of presets beside the configuration file')
      .requiredOption('--from <file>', 'the data file'),
  ).action(async (options, command: Command) => {
    const { updatePresets } = await import('./update.ts')
    await updatePresets(options, command)
  })
}

function withConsent(command: Command): Command {
  return command
    .option('--yes', 'write without asking')
    .option('--dry-run', 'show what would change, and write nothing')
}

const price = /^(input|output|cache_read|cache_write|cache_write_1h|cache_write_12h)=(\d{1,9}(?:\.\d{1,9})?)$/

/** @returns prices as decimal texts, by kind of token */
function readPrice(text: string, before: Record<string, string>): Record<string, string> {
  const [, kind, amount] = price.exec(text) ?? []
  if (kind === undefined || amount === undefined)
    throw new InvalidArgumentError(
      'Write a kind and credits per million tokens, such as input=3, output=15 or cache_read=0.3.',
    )
  return { ...before, [kind]: amount }
}
