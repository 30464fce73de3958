import type { StorePlace } from '../../config/config.ts'
import { explainCalls } from '../files/store-error.ts'
import type { CopyEnd, CopySource, CopyTarget } from './end.ts'

/** Opens the source of a copy. @throws StoreError if it cannot be used or does not exist */
export async function openSource(place: StorePlace): Promise<CopySource> {
  if (place.engine === 'sqlite') return (await import('./sqlite-end.ts')).openSqliteSource(place.path)
  const { openPostgresSource } = await import('./postgres-end.ts')
  return inWords(place.shown, () => openPostgresSource({ url: place.url.reveal(), shown: place.shown }))
}

/** Opens the target of a copy. A missing file is created; a database must exist. @throws StoreError */
export async function openTarget(place: StorePlace): Promise<CopyTarget> {
  if (place.engine === 'sqlite') return (await import('./sqlite-end.ts')).openSqliteTarget(place.path)
  const { openPostgresTarget } = await import('./postgres-end.ts')
  return inWords(place.shown, () => openPostgresTarget({ url: place.url.reveal(), shown: place.shown }))
}

/**
 * Opens the source or target of a copy. Errors of the opening and of all later calls are explained in words for people.
 */
async function inWords<End extends CopyEnd>(shown: string, open: () => Promise<End>): Promise<End> {
  const { explainDatabase } = await import('../postgres/trouble.ts')
  const { end } = explainCalls({ end: open }, (error) => explainDatabase(error, shown))
  return explainCalls(await end(), (error) => explainDatabase(error, shown))
}
