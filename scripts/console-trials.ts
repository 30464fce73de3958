import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildConsole } from './console/build.ts'

// npm run test:console [-- NAME …] [--screenshots]
//
// Tries the web console in the system's Chromium, with its sandbox, on a real gateway. It runs all trials of
// scripts/console/trials, or those whose names begin with a NAME. The sandbox needs an ordinary user, so root runs
// everything as nobody. `--screenshots` writes the pictures of docs/console.md.

const nobody = 65_534
const asked = process.argv.slice(2)

if (process.getuid?.() !== 0) {
  const { runTrials } = await import('./console/run-trials.ts')
  await runTrials(asked, process.env['TRIWIRE_CONSOLE_PICTURES'])
} else {
  await buildConsole()
  const folder = mkdtempSync(join(tmpdir(), 'triwire-console-'))
  chmodSync(folder, 0o700)
  chownSync(folder, nobody, nobody)
  const pictures = join(folder, 'pictures')
  const env = { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder, TRIWIRE_CONSOLE_PICTURES: pictures }
  const { status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), ...asked], {
    ...{ uid: nobody, gid: nobody, stdio: 'inherit', env, cwd: folder },
  })
  if (existsSync(pictures)) {
    cpSync(pictures, fileURLToPath(new URL('../docs/console', import.meta.url)), { recursive: true })
  }
  rmSync(folder, { recursive: true, force: true })
  process.exitCode = status ?? 1
}
