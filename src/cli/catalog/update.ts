import type { Command } from 'commander'
import { configFile } from '../../config/load.ts'
import { writeWhole } from '../../host/whole-file.ts'
import { confirm } from '../confirm.ts'
import { isJson, print } from '../print.ts'
import { comparePresets, newestDay, presetsBeside, presetsPath, readPresetsFile } from './presets-file.ts'
import type { ProposeOptions } from './propose.ts'

/**
 * Runs `catalog update`, which puts a newer presets file beside the configuration. The configuration stays as it is.
 */
export async function updatePresets(options: ProposeOptions & { from: string }, command: Command): Promise<void> {
  const config = configFile(command.optsWithGlobals())
  const path = presetsPath(config)
  const next = readPresetsFile(options.from)
  const before = presetsBeside(config)
  const { added, removed, changed } = comparePresets(before, next)
  const data = { file: path, from: newestDay(before), to: newestDay(next), added, removed, changed }
  const lines = [
    ...added.map((name) => `+ ${name}`),
    ...removed.map((name) => `- ${name}`),
    ...changed.map((name) => `~ ${name}`),
  ]
  // The change is shown before the question (ruling X15).
  if (!isJson(command) && lines.length > 0) console.log(lines.join('\n'))
  const isWritten = !options.dryRun
  if (isWritten && !options.yes)
    await confirm(command, `Write ${path}, with prices up to ${data.to}?`, [
      `${path} was left as it is`,
      'run with --yes to write it',
    ])
  if (isWritten) writeWhole(path, `${JSON.stringify(next, null, 2)}\n`)
  print(command, { ...data, written: isWritten }, () =>
    isWritten
      ? `Wrote ${path}: catalog add, catalog import and check take presets from it.`
      : 'Nothing was written: this was a dry run.',
  )
}
