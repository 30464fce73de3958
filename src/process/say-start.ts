import type { Config } from '../config/config.ts'
import { type Demo, demoCure, sayDemo } from './demo.ts'

export type Started = {
  /** The origin at which clients reach it. */
  base: string
  admin: string
  config: Config
  /** This start has made the store. */
  isStoreNew: boolean
  /** With the built-in catalog only. */
  demo: Demo | undefined
  /** The demo account is refused. */
  isDemoBarred: boolean
}

/**
 * The text of a start on stdout: where it listens, what it serves from and for whom, and what there is to do first.
 * @param accounts undefined where the store does not say
 */
export function sayStart(started: Started, accounts: number | undefined): string {
  const { base, admin, config, isStoreNew, demo, isDemoBarred } = started
  const facts = [
    `configuration ${config.file ?? 'none'}`,
    `store ${config.store.shown}${isStoreNew ? ' (new)' : ''}`,
    `models ${config.catalog.entries.length}`,
    `accounts ${accounts ?? 'not known while the store cannot be reached'}`,
  ]
  return [
    `triwire listens on ${base} (health and readiness on ${admin})`,
    facts.join(', '),
    ...(accounts === 0
      ? ['No account yet: triwire account create NAME --credit 10, then triwire key create NAME.']
      : []),
    ...(isDemoBarred ? [demoCure] : []),
    ...(demo ? [sayDemo(demo, base)] : []),
  ].join('\n')
}

/** The same for programs, as one line of JSON. */
export function startData({ base, admin, config, isStoreNew, demo }: Started, accounts: number | undefined): string {
  return JSON.stringify({
    url: base,
    admin_url: admin,
    config: config.file ?? null,
    store: config.store.shown,
    store_is_new: isStoreNew,
    models: config.catalog.entries.length,
    accounts: accounts ?? null,
    demo_key: demo?.key ?? null,
  })
}
