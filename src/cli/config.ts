import type { Command } from 'commander'
import { formatPrices } from '../accounts/credit.ts'
import { addCheckCommand } from './check/check.ts'
import { formatTable, print } from './print.ts'

/** The commands about the configuration and what it names. */
export function addConfigCommands(program: Command): void {
  addCheckCommand(program)
  program
    .command('models')
    .description('list the models that clients can name')
    .action(async (_options, command: Command) => {
      const { loadConfig } = await import('../config/load.ts')
      const { catalog } = loadConfig({ ...command.optsWithGlobals(), isWithoutFiles: true })
      const rows = catalog.entries.map((model) => ({
        id: model.id,
        also: model.aliases,
        wire: model.wire,
        upstream: model.routes[0]!.upstream,
        upstream_model: model.upstreamModel,
        upstreams: model.routes.map(({ upstream, priority, weight, serving }) => ({
          name: upstream,
          priority,
          weight,
          upstream_model: serving.upstreamModel,
        })),
        max_output_tokens: model.outputTokensMax,
        context_window: model.contextWindow ?? null,
        prices: formatPrices(model.prices),
        price_version: model.priceVersion,
      }))
      print(command, rows, () => {
        const cells = rows.map(({ id, wire, upstreams, prices }) => {
          const names = [...new Set(upstreams.map(({ name }) => name))].join(', ')
          return [id, wire, names, prices.input, prices.output]
        })
        return formatTable(['id', 'wire', 'upstream', 'input / 1M', 'output / 1M'], cells)
      })
    })
}
