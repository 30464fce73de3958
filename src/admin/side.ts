import type { Config } from '../config/config.ts'
import type { CallRecord, RecordListener } from '../gateway/record.ts'
import type { HttpExchange } from '../http/http-exchange.ts'
import type { Side, SideAnswer } from '../http/routes.ts'
import { ProblemError } from '../operations/problem.ts'
import {
  type AdminHandler,
  type AdminRequest,
  type ApiAnswer,
  answerLimits,
  guard,
  requestOf,
  send,
  tellProblem,
} from './answer.ts'
import { mayTake } from './shared-places.ts'

/** A request on the public listener that asks for no model. `record` gets the account, the key and the error code. */
export type SideRequest = AdminRequest & { record: CallRecord }

/** Handles a request. @returns undefined if another part sends the answer */
type SideHandler = (request: SideRequest) => Promise<ApiAnswer | undefined>

/** A path of the public listener that does not belong to models. */
export type SideRoute = {
  /**
   * The whole path. With a final slash, it includes the paths below it that have no route of their own. The path `/`
   * stands for itself only.
   */
  path: string
  answer: SideHandler
  /** Whether the current configuration serves the path for this request. Otherwise the path is unknown. */
  isOn(config: Config, exchange: HttpExchange): boolean
}

/** Time limits for bodies of requests that ask for no model, in ms. These bodies are small and arrive quickly. */
const bodyLimits = { bodyMs: 30_000, bodyGapMs: 30_000 }

/** Makes the handler of the routes. Of all routes that match a request, the one with the longest path serves it. */
export function createSide(routes: readonly SideRoute[], listeners: readonly RecordListener[]): Side {
  const whole = new Map(routes.map((route) => [route.path, route]))
  const below = routes
    .filter(({ path }) => path.endsWith('/') && path !== '/')
    .sort((a, b) => b.path.length - a.path.length)
  return { listeners, find }

  function find(path: string, config: Config, asked: HttpExchange): SideAnswer | undefined {
    const route = whole.get(path) ?? below.find((one) => path.startsWith(one.path))
    return route?.isOn(config, asked) ? (exchange, record) => answer(route, exchange, record) : undefined
  }

  async function answer({ answer }: SideRoute, ...[exchange, record]: Parameters<SideAnswer>) {
    const answered = await answer({ ...requestOf(exchange, record.id, record.path, bodyLimits), record })
    if (!answered) return 'handed_on' as const
    record.status = answered.status
    if (answered.status >= 400) record.outcome ??= answered.status < 500 ? 'refused' : 'internal_error'
    await send(exchange, answered, answerLimits)
    return 'answered' as const
  }
}

const retrySoon = { headers: { 'retry-after': '2' } }

/**
 * Limits how many requests of an API run at once, of all accounts and of each account (see `mayTake`). Under overload,
 * all requests of this API are refused, because requests to models come first. A request does not count while its body
 * is missing, so that slow clients do not use up the limit.
 */
export function giveWay(answer: AdminHandler, atOnceMax: number, isShedding: () => boolean): AdminHandler {
  /** The account of each request that runs; undefined until it is known. */
  const running = new Map<string, string | undefined>()
  return async (request) => {
    const { id } = request
    let account: string | undefined
    const enter = () => {
      if (running.size >= atOnceMax || isShedding())
        throw new ProblemError('rate_limited', 'The gateway has much to do: ask again soon.', retrySoon)
      const own = account === undefined ? 0 : [...running.values()].filter((one) => one === account).length
      if (!mayTake(own, running.size, atOnceMax)) throw new ProblemError('rate_limited', accountFull, retrySoon)
      running.set(id, account)
    }
    const readBody: AdminRequest['readBody'] = async (...limits) => {
      running.delete(id)
      const body = await request.readBody(...limits)
      enter()
      return body
    }
    const countFor = (payer: string) => {
      running.delete(id)
      account = payer
      enter()
    }
    try {
      enter()
      return await answer({ ...request, readBody, countFor })
    } catch (error) {
      if (error instanceof ProblemError) return guard(tellProblem(error, id), id)
      throw error
    } finally {
      running.delete(id)
    }
  }
}

const accountFull = 'Your account asks for as much at once as it may: ask again when answers have come.'
