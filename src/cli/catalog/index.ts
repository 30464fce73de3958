import { type Command, InvalidArgumentError, Option } from 'commander'
import { modelWireNames } from '../../catalog/wire-names.ts'

/** Adds the commands of the catalog. Each asks before it writes, and has `--yes` and `--dry-run` (ruling X15). */
export function addCatalogCommands(program: Command): void {
  const catalog = program.command('catalog').description('put models and their figures into the configuration file')
  withConsent(
    catalog
      .command('add')
      .argument('[preset]', 'the provider, by the name of its preset')
      .argument('[id...]', 'the models to add (default: all models of the preset)')
      .description(
        'add the models of a provider (a preset) with limits and dated prices; without a preset, list all known models',
      )
      .option('--upstream <name>', "the name for the provider's entry in upstreams (default: the name of the preset)")
      .option(
        '--price <kind=credits>',
        'a price of the model, if no price is known or yours differs; repeat it for each kind, such as input and output',
        readPrice,
        {},
      ),
  ).action(async (preset: string | undefined, ids: string[], options, command: Command) => {
    const { addPreset } = await import('./add.ts')
    await addPreset(preset, ids, options, command)
  })
  withConsent(
    catalog
      .command('import')
      .argument('<file>', 'the price file')
      .argument(
        '[id...]',
        'the models to add or update (default: update all models of the configuration that the file has)',
      )
      .description(
        'read limits and prices from the price file of LiteLLM or models.dev; with ids, add these models; without ids, update the models of the configuration',
      )
      .option('--upstream <name>', 'the entry of upstreams that serves the added models, or whose models are updated')
      .addOption(
        new Option('--wire <wire>', 'the wire that the upstream speaks (default: the wire of the provider)').choices(
          modelWireNames,
        ),
      )
      .option('--profile <name>', 'the profile that describes the upstream (default: the profile of the provider)'),
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
      .description('put a newer file of presets beside the configuration file')
      .requiredOption('--from <file>', 'the newer file of presets'),
  ).action(async (options, command: Command) => {
    const { updatePresets } = await import('./update.ts')
    await updatePresets(options, command)
  })
}

function withConsent(command: Command): Command {
  return command
    .option('--yes', 'write without asking first')
    .option('--dry-run', 'show what would change, and write nothing')
}

const price = /^(input|output|cache_read|cache_write|cache_write_1h|cache_write_12h)=(\d{1,9}(?:\.\d{1,9})?)$/

/** Adds a typed price to the prices of earlier options (`before`). Prices are decimal texts, by kind of token. */
function readPrice(text: string, before: Record<string, string>): Record<string, string> {
  const [, kind, amount] = price.exec(text) ?? []
  if (kind === undefined || amount === undefined)
    throw new InvalidArgumentError(
      'Write a kind and credits per million tokens, such as input=3, output=15 or cache_read=0.3.',
    )
  return { ...before, [kind]: amount }
}
