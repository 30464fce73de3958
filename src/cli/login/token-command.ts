import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The words with which an agent asks for a token, and a note for the person if they may stop working. */
type TokenCommand = { words: readonly string[]; note?: string }

const names = process.platform === 'win32' ? ['triwire.cmd', 'triwire.exe'] : ['triwire']

/** npm adds folders to the path of what it runs: those of a checkout, and of a package that it downloaded for the moment. */
const ofNpm = /[\\/](?:_npx|node_modules)[\\/]/

/** Names `triwire` itself if the person's path has it, so that an update is followed, and otherwise this copy of it. */
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
