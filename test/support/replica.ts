import { openSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { loadText } from '../../src/config/load.ts'
import { createLog } from '../../src/log/log.ts'
import { type RunningServer, startServer } from '../../src/process/server.ts'
import { openStore } from '../store/postgres/opened.ts'
import { atEnd } from './at-end.ts'
import { testFolder } from './folder.ts'

export type ReplicaFile = { models: readonly object[] } & Readonly<Record<string, unknown>>

/**
 * Starts one of several gateways on a database in this process, with real listeners and the simulator. The end of the
 * test closes it.
 * @param clockMs its monotonic clock
 */
export async function startReplica(
  name: string,
  store: string,
  simulatorUrl: string,
  { models, ...more }: ReplicaFile,
  clockMs = () => performance.now(),
): Promise<{ url: string; adminUrl: string; server: RunningServer }> {
  const folder = testFolder('replica')
  const file = {
    listen: '127.0.0.1:0',
    admin_listen: '127.0.0.1:0',
    store,
    state_dir: join(folder, 'state'),
    seal_key: Buffer.from('a seal key of thirty-two bytes..').toString('base64'),
    catalog: { pinned: '2026-11-01', models },
    upstreams: { sim: { base_url: simulatorUrl, accounts: [{ name: 'a', key: 'k' }] } },
    ...more,
  }
  const config = loadText(stringify(file), 'triwire.yaml', {}, {})
  const introduction = { name, version: '0', configDigest: 'c', sealFingerprint: 's' }
  // Waits longer for the store than a production gateway, so that a busy machine changes no result.
  const { stateDir, reporting } = config
  const opened = await openStore(store, { patienceMs: 20_000, stateDir, introduction, reporting })
  const descriptor = openSync(join(folder, 'log'), 'a')
  const log = createLog({ level: 'info', isPretty: false, descriptor, nowMs: Date.now })
  const server = await startServer({ config, store: opened, log, clockMs })
  atEnd(() => server.drain(0, 1_000))
  const urlOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}`
  return { url: urlOf(server.address), adminUrl: urlOf(server.adminAddress), server }
}
