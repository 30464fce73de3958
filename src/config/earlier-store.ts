import { existsSync } from 'node:fs'
import type { Config } from './config.ts'

/**
 * Before 0.2.0, the default place of the store was beside the configuration file; now it is the working folder. If there is
 * a store only at the old place, the operator must say which place to use (ruling X8).
 * @returns a sentence with both places, or undefined
 */
export function earlierStoreMistake({
  store,
  earlierStore,
}: Pick<Config, 'store' | 'earlierStore'>): string | undefined {
  if (store.engine !== 'sqlite' || earlierStore === undefined) return undefined
  if (existsSync(store.path) || !existsSync(earlierStore)) return undefined
  return `There is a store at ${earlierStore}, beside the configuration, where triwire kept it before 0.2.0; now the default is ${store.path}, in the working folder, and there is none: name the one that is meant with --store, TRIWIRE_STORE, or \`store\` in the configuration`
}
