import { spawn } from 'node:child_process'

/** Whether this machine can show a page to the person. It cannot over SSH, or on Linux without a display. */
export function hasBrowser(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): boolean {
  if (env['BROWSER']) return true
  if (env['SSH_CONNECTION'] || env['SSH_TTY']) return false
  return ['darwin', 'win32'].includes(platform) || Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY'])
}

/** Opens a page in the person's browser, without a shell. @returns whether the browser's program could be started */
export function openBrowser(url: string, env: NodeJS.ProcessEnv = process.env): Promise<boolean> {
  const [program, ...args] = env['BROWSER'] ? [env['BROWSER']] : (openers[process.platform] ?? ['xdg-open'])
  return new Promise((resolve) => {
    const child = spawn(program!, [...args, url], { stdio: 'ignore', detached: true })
    child.once('error', () => resolve(false)).once('spawn', () => resolve(true))
    child.unref()
  })
}

const openers: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: ['open'],
  // `start` is a command of the shell, and the shell would interpret the `&` of an address.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}
