import type { StorePlace } from '../../config/config.ts'
import { explainCalls, explainError } from '../files/store-error.ts'
import type { CopyEnd, CopySource, CopyTarget } from './end.ts'

/** Opens the source of a copy. @throws StoreError if it cannot be used or does not exist */
export async function openSource(place: StorePlace): Promise<CopySource> {
  if (place.engine === 'sqlite') {
    const { openSqliteSource } = await import('./sqlite-end.ts')
    return inWords(place, async () => openSqliteSource(place.path))
  }
  const { openPostgresSource } = await import('./postgres-end.ts')
  return inWords(place, () => openPostgresSource({ url: place.url.reveal(), shown: place.shown }))
}

/** Opens the target of a copy. A missing file is created; a database must exist. @throws StoreError */
export async function openTarget(place: StorePlace): Promise<CopyTarget> {
  if (place.engine === 'sqlite') {
    const { openSqliteTarget } = await import('./sqlite-end.ts')
    return inWords(place, async () => openSqliteTarget(place.path))
  }
  const { openPostgresTarget } = await import('./postgres-end.ts')
  return inWords(place, () => openPostgresTarget({ url: place.url.reveal(), shown: place.shown }))
}

/**
 * Opens the source or target of a copy. Errors of the opening and of all later calls are explained in words for people.
 */
async function inWords<End extends CopyEnd>(place: StorePlace, open: () => Promise<End>): Promise<End> {
  const explain = await explainerOf(place)
  const { end } = explainCalls({ end: open }, explain)
  return explainCalls(await end(), explain)
}

async function explainerOf(place: StorePlace): Promise<(error: unknown) => unknown> {
  if (place.engine === 'sqlite') return (error) => explainError(place.path, error)
  const { explainDatabase } = await import('../postgres/trouble.ts')
  return (error) => explainDatabase(error, place.shown)
}
