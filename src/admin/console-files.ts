import { execFile } from 'node:child_process'
import { existsSync, globSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** The built web console. `npm run console` builds it, and the package contains it. */
export type ConsoleFiles = {
  /**
   * Returns the page.
   * @param up the relative path from the requested page to the console, such as `../`
   * @param api the path of the page's API, relative to the path of the listener
   * @param hasSignIn whether people can sign in at an identity provider too, and not only with keys and tokens
   */
  page(up: string, api: string, hasSignIn?: boolean): string
  read(name: string): Promise<Asset | undefined>
}

type Asset = { type: string; plain: Buffer; brotli: Buffer }

/** Called for each page. @returns the current files, or a message for the user if there are none */
export type OpenConsole = () => Promise<ConsoleFiles | string>

/** The list of files that the build writes. */
type Manifest = { script: string; style: string; icon: string; files: readonly string[] }

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

const consoleFolder = fileURLToPath(new URL('../../console', import.meta.url))

/**
 * Opens the built console. In a checkout, the console is built again first if its sources are newer than the built
 * files. A package has no sources, so nothing is written.
 */
export function openConsole(folder = consoleFolder): OpenConsole {
  let building: Promise<string | undefined> | undefined
  let opened: { atMs: number; files: ConsoleFiles } | undefined
  return async () => {
    if (isStale(folder)) {
      building ??= build(join(folder, '..')).finally(() => {
        building = undefined
      })
      const failure = await building
      // The build failed, for example because the folder is read-only. Files of an earlier build are then used.
      if (failure !== undefined && modifiedMs(join(folder, 'dist/manifest.json')) === undefined) return failure
    }
    const builtMs = modifiedMs(join(folder, 'dist/manifest.json'))
    if (builtMs === undefined) return 'The console is not built: npm run console builds it.\n'
    if (opened?.atMs !== builtMs) opened = { atMs: builtMs, files: await openFolder(join(folder, 'dist')) }
    return opened.files
  }
}

async function openFolder(folder: string): Promise<ConsoleFiles> {
  const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')) as Manifest
  const names = new Set(manifest.files)
  const kept = new Map<string, Asset>()
  return { page: (up, api, hasSignIn = false) => pageOf(manifest, up, { api, hasSignIn }), read }

  async function read(name: string): Promise<Asset | undefined> {
    if (!names.has(name)) return undefined
    const known = kept.get(name)
    if (known) return known
    const [plain, brotli] = await Promise.all([readFile(join(folder, name)), readFile(join(folder, `${name}.br`))])
    const asset = { type: types[name.split('.').at(-1)!] ?? 'application/octet-stream', plain, brotli }
    kept.set(name, asset)
    return asset
  }
}

/** Makes the page. All its paths are relative, so that the console works below any path that a proxy adds. */
function pageOf(
  { script, style, icon }: Manifest,
  up: string,
  { api, hasSignIn }: { api: string; hasSignIn: boolean },
): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="api" content="${api}">${hasSignIn ? '\n<meta name="sign-in" content="yes">' : ''}
<title>triwire</title>
<link rel="icon" type="image/svg+xml" href="${up}assets/${icon}">
<link rel="stylesheet" href="${up}assets/${style}">
<script type="module" src="${up}assets/${script}"></script>
</head>
<body>
<div id="console"></div>
<noscript>The console of this gateway needs JavaScript. The command line has the same: triwire --help</noscript>
</body>
</html>
`
}

/** Whether a source is newer than the built files. */
function isStale(folder: string): boolean {
  if (!existsSync(join(folder, 'src'))) return false
  const builtMs = modifiedMs(join(folder, 'dist/manifest.json'))
  if (builtMs === undefined) return true
  return globSync('{src,style}/**/*.*', { cwd: folder }).some((file) => (modifiedMs(join(folder, file)) ?? 0) > builtMs)
}

function modifiedMs(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs
}

const run = promisify(execFile)

/** Builds the console. @returns a message for the user if that failed */
async function build(root: string): Promise<string | undefined> {
  try {
    await run(process.execPath, [join(root, 'scripts/console.ts')], { cwd: root, timeout: 60_000 })
    return undefined
  } catch (error) {
    // The build's output contains paths of this machine, so it is not sent. A user of the machine can run the command.
    const { stderr = '' } = error as Error & { stderr?: string }
    return stderr.includes('ERR_MODULE_NOT_FOUND')
      ? 'The console is built of packages that are not installed: run npm ci without --omit=dev, or use the package, which has it.\n'
      : 'The console could not be built: npm run console says why.\n'
  }
}
