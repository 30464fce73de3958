import { type Command, InvalidArgumentError } from 'commander'
import type { Chain } from '../catalog/model.ts'
import { type GlobalOptions, usage } from './options.ts'
import { formatFields, formatTable, print } from './print.ts'

type PriceOptions = GlobalOptions & { at?: string; tier?: string; geo?: string; tokens: number }

/** Adds `price`, which shows the row, band and factors that apply to a model, and the resulting rates. */
export function addPriceCommand(program: Command): void {
  program
    .command('price')
    .argument('<model>', 'a model of the catalog, by its id or by another of its names')
    .description('show the prices of a model at a moment, and where they come from')
    .option(
      '--at <time>',
      'the moment: a day of the reporting zone such as 2027-01-01, or a time such as 2027-01-01T08:30:00Z; default: now',
    )
    .option('--tier <tier>', 'the service tier: flex, priority (or fast), ultrafast; default: the base tier')
    .option('--geo <geo>', 'the geography that serves the request, such as us')
    .option('--tokens <tokens>', 'the number of input tokens, which decides the price step', readCount, 0)
    .action(async (id: string, _options, command: Command) => {
      const options = command.optsWithGlobals<PriceOptions>()
      const { glanceAtConfig } = await import('../config/load.ts')
      const { describePrice, readPriceFacts } = await import('./price-text.ts')
      const config = glanceAtConfig(options)
      const model = config.catalog.models.get(id)
      if (!model) throw usage(`there is no model '${id}'${await nearTo(id, [...config.catalog.models.keys()])}`)
      if (model.chain) throw usage(`'${id}' is a chain: ask for the model that answers, ${listIds(model.chain)}`)
      const asked = readPriceFacts(options, config)
      if ('mistake' in asked) throw usage(asked.mistake)
      const told = describePrice(model, { ...asked, inputTokens: options.tokens })
      print(command, told, () => formatPrice(told))
    })
}

function listIds({ entries }: Chain): string {
  return entries.map(({ id }) => id).join(' or ')
}

function readCount(text: string): number {
  if (!/^(?:0|[1-9]\d{0,11})$/.test(text)) throw new InvalidArgumentError('It is a whole number.')
  return Number(text)
}

async function nearTo(id: string, ids: readonly string[]): Promise<string> {
  const { findNearIds } = await import('../catalog/near-ids.ts')
  const near = findNearIds(id, ids)
  return near.length === 0 ? ': triwire models lists them' : `: did you mean ${near.join(' or ')}?`
}

type ToldPrice = ReturnType<typeof import('./price-text.ts').describePrice>

function formatPrice({
  model,
  at,
  rates,
  calls,
  row,
  from,
  band,
  tier,
  geo,
  step,
  factors,
  next,
  notes,
}: ToldPrice): string {
  const times = (name: string | null, factor: string | null | undefined) =>
    name === null ? '-' : factor === null || factor === undefined ? `${name}, written out` : `${name}, times ${factor}`
  const facts = {
    ...{ model, at, row: from === null ? `${row}` : `${row}, from ${from}` },
    ...{ band: times(band, factors.band), tier: times(tier, factors.tier), geo: times(geo, factors.geo) },
    step: step === null ? '-' : `above ${step} tokens of input`,
    ...rates,
    ...Object.fromEntries(Object.entries(calls).map(([kind, price]) => [`call of ${kind}`, price])),
  }
  const changes = next.map((one) => [one.at, one.band ?? '-', one.rates.input, one.rates.output])
  return [
    formatFields(facts),
    ...(changes.length > 0 ? ['', formatTable(['from', 'band', 'input', 'output'], changes)] : []),
    ...notes.map((note) => `\n${note}`),
  ].join('\n')
}
