import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The command with which an agent gets a token. `note` tells the person why the command may stop working. */
type TokenCommand = { words: readonly string[]; note?: string }

const names = process.platform === 'win32' ? ['triwire.cmd', 'triwire.exe'] : ['triwire']

/** Matches folders that npm adds to PATH while it runs a program: those of a project or of a temporary download. */
const ofNpm = /[\\/](?:_npx|node_modules)[\\/]/

/**
 * Returns the command for `triwire token`. If `triwire` is in PATH, the command has only its name, so that updates
 * apply. Otherwise it has the path of the program.
 */
export function findTokenCommand(url: string, env: NodeJS.ProcessEnv = process.env): TokenCommand {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '' && !ofNpm.test(`${folder}/`))
  const isInstalled = folders.some((folder) => names.some((name) => existsSync(join(folder, name))))
  if (isInstalled) return { words: ['triwire', 'token', url] }
  const program = fileURLToPath(new URL('../../../bin/triwire.mjs', import.meta.url))
  if (ofNpm.test(program) && program.includes('_npx'))
    return {
      words: ['triwire', 'token', url],
      note: 'the agent runs triwire: install it with npm install --global triwire',
    }
  return { words: [process.execPath, program, 'token', url] }
}
