import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { stringify } from 'yaml'
import { pack } from './packed.ts'
import { trySetup } from './set-up.ts'
import { cache, expect, must, newFolder, run, shell, tryGateway } from './tools.ts'

const anyPorts = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']

export async function byNpx(): Promise<string[]> {
  const lines: string[] = []
  for (const version of ['22.22.1', '26.10.0']) {
    const env = shell(version)
    const npx = ['npx', '--yes', '--package', pack(), 'triwire']
    lines.push(...(await tryBoth(`Node ${version}`, npx, env)))
  }
  return lines
}

async function tryBoth(name: string, npx: readonly string[], env: NodeJS.ProcessEnv): Promise<string[]> {
  const cwd = newFolder('npx')
  const demo = await tryGateway([...npx, ...anyPorts], { cwd, env })
  return [`${name}: without a command ${demo}; ${await trySetup(npx, env)}`]
}

/** Installs from a registry on this machine, which passes requests for all other packages to npm's. */
export async function fromRegistry(): Promise<string[]> {
  const env = shell('26.10.0')
  const home = join(cache, 'verdaccio')
  const manifest = { dependencies: { verdaccio: '6.8.0' }, overrides: { 'node-fetch': '2.7.0' } }
  must(['mkdir', '-p', home])
  writeFileSync(join(home, 'package.json'), JSON.stringify(manifest))
  must(['npm', 'install', '--ignore-scripts'], { cwd: home, env })
  const folder = newFolder('registry')
  const settings = {
    storage: join(folder, 'storage'),
    uplinks: { up: { url: must(['npm', 'config', 'get', 'registry'], { env }) } },
    packages: { triwire: { access: '$all', publish: '$anonymous' }, '**': { access: '$all', proxy: 'up' } },
    log: { type: 'stdout', format: 'pretty', level: 'error' },
  }
  const file = join(folder, 'verdaccio.yaml')
  writeFileSync(file, stringify(settings))
  const address = '127.0.0.1:4873'
  const program = join(home, 'node_modules/verdaccio/bin/verdaccio')
  const server = spawn(process.execPath, [program, '--config', file, '--listen', address], { stdio: 'ignore' })
  try {
    const registry = `http://${address}/`
    for (
      let tries = 0;
      !(await fetch(`${registry}-/ping`).then(
        ({ ok }) => ok,
        () => false,
      ));
      tries++
    ) {
      if (tries > 100) throw new Error('the registry does not answer')
      await pause(200)
    }
    // npm publishes a prerelease only under a tag that is named.
    const flags = ['--registry', registry, `--//${address}/:_authToken=any`, '--tag', 'latest']
    // In the checkout, `npm publish` must be refused; a tarball must be accepted.
    const refused = run(['npm', 'publish', ...flags], { cwd: join(import.meta.dirname, '../..'), env })
    expect(
      refused.status !== 0 && refused.text.includes('private'),
      'npm publish in the checkout is refused',
      refused.text,
    )
    must(['npm', 'publish', ...flags, pack()], { cwd: folder, env })
    const told = JSON.parse(must(['npm', 'view', 'triwire', '--json', '--registry', registry], { cwd: folder, env }))
    expect(
      told.optionalDependencies === undefined,
      'the published manifest has no Node',
      JSON.stringify(told.optionalDependencies),
    )
    const own = { ...env, npm_config_cache: newFolder('npm-cache') }
    const lines = await tryBoth('npx triwire', ['npx', '--yes', '--registry', registry, 'triwire'], own)
    const engines = JSON.stringify(told.engines)
    return [
      ...lines,
      `the registry was told engines ${engines}, dependencies ${Object.keys(told.dependencies).join(', ')}`,
    ]
  } finally {
    server.kill()
  }
}
