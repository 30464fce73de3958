import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { expect, must, newFolder, root, run, tryBinaries } from '../install/tools.ts'
import { podmanSettings } from './podman-settings.ts'
import { listens } from './try.ts'

/** The compose file's names of the images that it does not build. */
const images = { postgres: 'localhost/trial-postgres:latest', proxy: 'localhost/trial-haproxy:latest' }

const asked = 60

/**
 * Runs examples/compose-replicas.yaml unchanged, with images of PostgreSQL and of the proxy that are built from
 * Debian's packages. Two replicas answer at one address. One is killed, which no client may notice. The books must be
 * right.
 */
export async function tryReplicas(name: string): Promise<string[]> {
  tryBinaries('podman', 'runc', 'podman-compose', 'mmdebstrap', 'buildah')
  buildServices()
  const folder = newFolder('replicas')
  const settings = join(folder, 'containers.conf')
  writeFileSync(settings, podmanSettings)
  for (const file of ['compose-replicas.yaml', 'haproxy.cfg'])
    copyFileSync(join(root, 'examples', file), join(folder, file))
  const proxy = readFileSync(join(folder, 'haproxy.cfg'), 'utf8')
  writeFileSync(join(folder, 'haproxy.cfg'), proxy.replace('maxconn 40000', 'maxconn 1000'))
  writeFileSync(join(folder, 'triwire.yaml'), configuration())
  writeFileSync(
    join(folder, '.env'),
    `PGPASSWORD=canary\nTRIWIRE_SEAL_KEY=${Buffer.from('a seal key of thirty-two bytes..').toString('base64')}\n`,
  )
  // Adds a model that answers; leaves out limits that not every machine may set.
  const text = readFileSync(join(folder, 'compose-replicas.yaml'), 'utf8').replace(/^ +ulimits:.*\n/m, '')
  writeFileSync(join(folder, 'compose-replicas.yaml'), text)
  writeFileSync(join(folder, 'model.yaml'), modelService(name))
  const compose = ['podman-compose', '-f', 'compose-replicas.yaml', '-f', 'model.yaml']
  const env = {
    ...process.env,
    CONTAINERS_CONF: settings,
    TRIWIRE_IMAGE: name,
    POSTGRES_IMAGE: images.postgres,
    PROXY_IMAGE: images.proxy,
    PGPASSWORD: 'canary',
  }
  const options = { cwd: folder, env }
  const logs = () => run([...compose, 'logs'], options).text
  // podman-compose prints its actions on stdout, so podman is called with the container's own name.
  const containerOf = (service: string) =>
    must(['podman', 'ps', '--filter', `name=_${service}_`, '--format', '{{.Names}}'], options)
  const within = (...command: string[]) =>
    must(['podman', 'exec', containerOf('one'), 'triwire', '--json', ...command], options)
  try {
    const { text: up } = run([...compose, 'up', '--detach'], options)
    const url = 'http://127.0.0.1:8080'
    await listens(url, () => up + logs())
    within('account', 'create', 'acme', '--credit', '5')
    const { key } = JSON.parse(within('key', 'create', 'acme'))
    const before = await askMany(url, key)
    const replicas = JSON.parse(within('replicas')) as { name: string; left: string | null }[]
    const names = replicas.map((replica) => replica.name).sort()
    expect(names.length === 2, 'two replicas are listed', JSON.stringify(replicas))
    must(['podman', 'kill', containerOf('two')], options)
    const after = await askMany(url, key)
    for (const [when, statuses] of Object.entries({ before, after }))
      expect(
        statuses.every((status) => status === 200),
        `${when} the kill all are answered`,
        `${statuses}`,
      )
    const verdict = JSON.parse(within('ledger', 'verify')) as { ok: boolean }
    expect(verdict.ok, 'the books are right', JSON.stringify(verdict))
    const [total] = JSON.parse(within('ledger', 'totals')) as { requests: number }[]
    expect(total?.requests === 2 * asked, 'every answer is in the ledger, once', JSON.stringify(total))
    return [
      `compose of two replicas (${names.join(', ')}), PostgreSQL and a proxy: ${2 * asked} answers, one replica killed between them, ${total?.requests} debits`,
    ]
  } finally {
    run([...compose, 'down', '--volumes'], options)
    run(['podman', 'network', 'rm', 'replicas_inside'], options)
  }
}

async function askMany(url: string, key: string): Promise<number[]> {
  const statuses: number[] = []
  for (let i = 0; i < asked; i++) {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ model: 'sim', messages: [{ role: 'user', content: 'Hello!' }] }),
    })
    await response.text()
    statuses.push(response.status)
  }
  return statuses
}

function configuration(): string {
  const model = {
    id: 'sim',
    wire: 'chat',
    upstream: 'model',
    upstream_model: 'sim',
    max_output_tokens: 900,
    prices: { input: '1', output: '2' },
  }
  return stringify({
    trusted_proxies: ['10.89.77.0/24'],
    catalog: { pinned: '2026-11-01', models: [model] },
    upstreams: { model: { base_url: 'http://model:4100', accounts: [{ name: 'a', key: 'any' }] } },
  })
}

function modelService(name: string): string {
  const service = { image: name, command: ['simulator', '--host', '0.0.0.0', '--port', '4100'], networks: ['inside'] }
  return stringify({ services: { model: service } })
}

/** Builds images of Debian with one package each, which start like the images that they replace. */
function buildServices(): void {
  const work = newFolder('services')
  const tar = join(work, 'root.tar')
  if (!existsSync(tar))
    must(['mmdebstrap', '--variant=minbase', '--include=postgresql,haproxy', 'bookworm', tar], { seconds: 400 })
  writeFileSync(join(work, 'start-postgres'), startPostgres, { mode: 0o755 })
  for (const [what, name] of Object.entries(images)) {
    const folder = join(work, what)
    mkdirSync(folder)
    copyFileSync(join(work, 'start-postgres'), join(folder, 'start-postgres'))
    run(['ln', '-f', tar, join(folder, 'root.tar')])
    writeFileSync(join(folder, 'Containerfile'), files[what as keyof typeof images])
    must(['buildah', 'bud', '--quiet', '--format', 'docker', '--isolation', 'chroot', '--tag', name, folder])
  }
}

const files = {
  postgres: `FROM scratch
ADD root.tar /
COPY start-postgres /start-postgres
CMD ["/start-postgres"]
`,
  proxy: `FROM scratch
ADD root.tar /
CMD ["/usr/sbin/haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
`,
}

/** Applies the variables of the original image: user, database and password at the first start. */
const startPostgres = `#!/bin/sh
set -eu
data=/var/lib/postgresql/data
bin=$(echo /usr/lib/postgresql/*/bin)
mkdir -p "$data" /run/postgresql
chown postgres "$data" /run/postgresql
chmod 700 "$data"
as() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
if [ ! -s "$data/PG_VERSION" ]; then
  echo "$POSTGRES_PASSWORD" > /tmp/password
  as "$bin/initdb" -D "$data" -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 $POSTGRES_INITDB_ARGS
  rm /tmp/password
  echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
  as "$bin/pg_ctl" -D "$data" -w -o "-c listen_addresses=''" start
  PGPASSWORD=$POSTGRES_PASSWORD as "$bin/createdb" -h /run/postgresql -U "$POSTGRES_USER" "$POSTGRES_DB" || true
  as "$bin/pg_ctl" -D "$data" -w stop
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups "$bin/postgres" -D "$data" -c listen_addresses='*'
`
