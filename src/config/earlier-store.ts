import { existsSync } from 'node:fs'
import type { Config } from './config.ts'

/**
 * Before 0.2.0 a store that was not named lay beside the configuration file; now it lies in the working folder. Where only
 * the former is there, somebody has to say which is meant (ruling X8).
 * @returns a sentence with both places, or undefined.
 */
export function earlierStoreMistake({
  store,
  earlierStore,
}: Pick<Config, 'store' | 'earlierStore'>): string | undefined {
  if (store.engine !== 'sqlite' || earlierStore === undefined) return undefined
  if (existsSync(store.path) || !existsSync(earlierStore)) return undefined
  return `There is a store at ${earlierStore}, beside the configuration, where triwire kept it before 0.2.0; now the default is ${store.path}, in the working folder, and there is none: name the one that is meant with --store, TRIWIRE_STORE, or \`store\` in the configuration`
}
