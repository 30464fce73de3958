import type { Program } from '../program.ts'
import { opencode } from './opencode.ts'

/** A relative of opencode that reads the same settings from a place of its own. */
export const kilo: Program = {
  wires: opencode.wires,
  settings(access, wire) {
    const { file, ...settings } = opencode.settings(access, wire)
    return { ...settings, file: { path: '~/.config/kilo/kilo.json', text: file!.text }, run: 'kilo' }
  },
}
