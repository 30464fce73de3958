import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { version } from '../host/version.ts'
import type { GlobalOptions } from './options.ts'
import { print, printError } from './print.ts'

/** The root folder of the package or of the checkout. */
const packageRoot = fileURLToPath(new URL('.', new URL('../../package.json', import.meta.url)))

/**
 * Adds `version`, which can compare the installed files with the signed manifest of the release. The exit code is then
 * 0 if they are equal, 1 if they differ, and 2 if they cannot be compared.
 */
export function addVersionCommand(program: Command): void {
  program
    .command('version')
    .description('print the version, or compare the installed files with the signed manifest of the release (--verify)')
    .option(
      '--verify',
      'compare the installed files with the manifest, and name each file that was changed, is missing or was added',
    )
    .option(
      '--key <file>',
      'a file with the public key, from a source that you trust (default: SECURITY.md of the package)',
    )
    .action(async (options: { verify?: true; key?: string }, command: Command) => {
      if (options.key !== undefined && !options.verify) command.error('error: --key belongs to --verify')
      if (!options.verify) print(command, { version }, () => version)
      else await tellVerification(options.key, command)
    })
}

async function tellVerification(keyFile: string | undefined, command: Command): Promise<void> {
  const { NotVerifiable, readKeyFile, verifyInstalled } = await import('../host/installed.ts')
  try {
    const { changed, missing, added, ...rest } = verifyInstalled(packageRoot, keyFile && readKeyFile(keyFile))
    const ok = changed.length + missing.length + added.length === 0
    if (!ok) process.exitCode = 1
    print(command, { ok, version, ...rest, changed, missing, added }, () =>
      [
        ...Object.entries({ changed, missing, added }).flatMap(([what, paths]) =>
          paths.map((path) => `${what.padEnd(8)} ${JSON.stringify(path).slice(1, -1)}`),
        ),
        ok
          ? `ok: the ${rest.files} files are those of triwire ${version}`
          : `These are not the files of triwire ${version}: install it anew.`,
        `key SHA-256 ${rest.key}`,
        'Packages that triwire depends on are not compared: npm does that (npm audit signatures).',
      ].join('\n'),
    )
  } catch (error) {
    if (!(error instanceof NotVerifiable)) throw error
    process.exitCode = 2
    const isJson = command.optsWithGlobals<GlobalOptions>().json === true
    printError({ code: 'failed', message: isJson ? error.message : `triwire: ${error.message}` }, isJson)
  }
}
