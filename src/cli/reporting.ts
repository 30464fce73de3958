import type { Command } from 'commander'
import { note, print } from './print.ts'
import { withStore } from './store.ts'

/** Adds `reporting rezone`: it changes the time zone of reports and budgets, which a store has only one of (ruling X12). */
export function addReportingCommands(program: Command): void {
  program
    .command('reporting')
    .description('the days of reports and budgets')
    .command('rezone')
    .description('count by the days of another zone, while no server runs: the days of reports are made anew')
    .argument('<zone>', 'such as UTC or Europe/Berlin')
    .action(async (zone: string, _options, command: Command) => {
      const { timeZoneMistake } = await import('../config/time-zones.ts')
      const mistake = timeZoneMistake(zone)
      if (mistake) command.error(`error: <zone> ${mistake}`)
      await withStore(
        command,
        async (books) => {
          const { before, after } = await books.rezone(zone)
          const data = { before: before ?? null, after, changed: before !== after }
          print(command, data, () =>
            data.changed
              ? `the days of reports and budgets are those of ${after} from now on${before === undefined ? '' : `, and were those of ${before}`}`
              : `the days of reports and budgets are those of ${after} already`,
          )
          if (data.changed) note(command, `set reporting.time_zone: ${after} in the configuration of every server`)
        },
        { isAlone: true },
      )
    })
}
