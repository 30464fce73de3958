import type { Program } from '../program.ts'
import { opencode } from './opencode.ts'

/** A relative of opencode that reads the same settings from a place of its own. */
export const kilo: Program = {
  wires: opencode.wires,
  assumes: opencode.assumes!,
  settings(access, wire) {
    const { files, ...settings } = opencode.settings(access, wire)
    const path = '~/.config/kilo/kilo.json'
    return {
      ...settings,
      files: [{ ...files![0]!, path, elsewhere: ['~/.config/kilo/kilo.jsonc'] }],
      commands: [['kilo']],
    }
  },
}
