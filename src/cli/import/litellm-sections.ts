import { asObject } from '../../bytes/json.ts'
import { type LitellmMaking, objectsOf, type SourceFields, wordOf } from './litellm-settings.ts'

/** Makes the sections of our configuration that apply to all models: timeouts, limits and the log. */
export function makeSections(made: LitellmMaking): SourceFields {
  const [router, module, general] = ['router_settings', 'litellm_settings', 'general_settings'].map(
    (section) => asObject(made.source[section]) ?? {},
  ) as [SourceFields, SourceFields, SourceFields]
  const limits: SourceFields = {}
  const log: SourceFields = {}
  const timeouts = timeoutsOf(made, module, router)
  const bytes = Number(wordOf(general['max_request_size_mb']))
  if (bytes > 0 && bytes <= 1024) {
    limits['body_bytes_max'] = Math.max(1024, Math.round(bytes * 1_048_576))
    made.note('general_settings.max_request_size_mb', 'carried', 'limits.body_bytes_max')
  }
  if (typeof module['json_logs'] === 'boolean') {
    if (module['json_logs']) log['format'] = 'json'
    made.note('litellm_settings.json_logs', 'carried', 'log.format')
  }
  const parts = { timeouts, limits, log }
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0))
}

/** Our default timeouts, in seconds (docs/configuration.md). */
const usualSeconds = { json: 600, stream: 300 }

/**
 * Makes timeouts. Our timeouts apply to all models, so LiteLLM's longest timeout is taken. For a stream, LiteLLM uses
 * the deployment's `stream_timeout`, or else the router's, or else the timeout of other answers (litellm 1.110,
 * `Router._get_timeout`).
 */
function timeoutsOf(made: LitellmMaking, module: SourceFields, router: SourceFields): SourceFields {
  const read = (path: string, value: unknown, keys: readonly string[]): number | undefined => {
    const seconds = Number(wordOf(value))
    if (value === undefined || !(seconds > 0 && seconds <= 86_400)) return undefined
    made.note(path, 'carried', keys.map((key) => `timeouts.${key}`).join(', '))
    return seconds
  }
  const [json, stream] = ['first_byte_json', 'first_byte_stream']
  const ofModule = read('litellm_settings.request_timeout', module['request_timeout'], [json!, stream!])
  const usual = read('router_settings.timeout', router['timeout'], [json!, stream!]) ?? ofModule
  const usualStream = read('router_settings.stream_timeout', router['stream_timeout'], [stream!])
  const wishes = objectsOf(made.source['model_list']).map((entry, at) => {
    const params = asObject(entry['litellm_params']) ?? {}
    const path = `model_list[${at}].litellm_params`
    const own =
      read(`${path}.timeout`, params['timeout'], [json!, stream!]) ??
      read(`${path}.request_timeout`, params['request_timeout'], [json!, stream!])
    const ownStream = read(`${path}.stream_timeout`, params['stream_timeout'], [stream!])
    return { json: own ?? usual, stream: ownStream ?? usualStream ?? own ?? usual }
  })
  const timeouts: SourceFields = {}
  for (const kind of ['json', 'stream'] as const) {
    const set = wishes.map((wish) => wish[kind])
    if (set.every((one) => one === undefined)) continue
    const all = set.map((one) => one ?? usualSeconds[kind])
    timeouts[`first_byte_${kind}`] = `${Math.max(1, Math.round(Math.max(...all)))}s`
    if (new Set(all).size > 1)
      made.notes.add(`timeouts.first_byte_${kind}: the longest of several is taken for all models.`)
  }
  return timeouts
}
