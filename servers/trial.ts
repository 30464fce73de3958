import type { ClientWire } from '../src/catalog/wire-names.ts'
import { type Ask, type Client, clientOf, type Told } from './client.ts'
import type { Feature, Trial } from './features.ts'
import { modelIds } from './gateway.ts'

/** The usage that a client received, to be compared with the ledger. */
export type Bill = { id: string; usage: Told['usage']; what: string }

/** The address that trials ask: the gateway, or the server directly. */
export type Side = {
  url: string
  key: string
  modelOf(wire: ClientWire): string
  bills?: Bill[]
  /** Answers that were cut, and requests that were refused. */
  cut?: Asked[]
  refused?: Asked[]
}

type Asked = { id: string; what: string }

/** Opens the setting of a feature for one client on one pair of wires. @param what names it in failures */
export function openTrial(
  side: Side,
  clientWire: ClientWire,
  modelWire: ClientWire,
  isStreamed: boolean,
  what: string,
): Trial {
  let last = ''
  const onRequest = (id: string) => {
    last = id
  }
  const client: Client = clientOf(clientWire, { url: side.url, key: side.key, onRequest })
  const ask = async (asked: Ask, model = side.modelOf(modelWire)) => {
    const told = await client.ask(model, asked, isStreamed)
    const { input, cached, output } = told.usage
    if (!(input > 0 && output > 0 && cached <= input)) throw new Error(`usage ${JSON.stringify(told.usage)}`)
    side.bills?.push({ id: last, usage: told.usage, what })
    return told
  }
  return {
    client,
    async cut(asked) {
      const told = await client
        .ask(side.modelOf(modelWire), asked, isStreamed)
        .catch((error: unknown) => error as Error)
      if (!(told instanceof Error)) throw new Error('an answer that was cut counts as complete')
      side.cut?.push({ id: last, what })
    },
    modelWire,
    isStreamed,
    ask,
    async refusal(asked, model = side.modelOf(modelWire)) {
      const told = await client.ask(model, asked, isStreamed).catch((error: unknown) => error as Error)
      if (told instanceof Error && last !== '') side.refused?.push({ id: last, what })
      if (!(told instanceof Error)) throw new Error(`the request was not refused: ${told.text}`)
      const { status } = told as { status?: number }
      return { status: status ?? 0, text: told.message }
    },
  }
}

/** @returns the failure in words, or undefined */
export async function tryFeature(feature: Feature, trial: Trial): Promise<string | undefined> {
  try {
    await feature.run(trial)
    return undefined
  } catch (error) {
    return wordsOf(error)
  }
}

export function wordsOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.replace(/\s+/g, ' ').slice(0, 200)
}

export const throughGateway = (url: string, key: string): Required<Side> => ({
  url,
  key,
  bills: [],
  cut: [],
  refused: [],
  modelOf: modelIds.plain,
})
