import { asObject } from '../bytes/json.ts'
import type { Frame, SimulatorWire } from './prompt.ts'
import type { ScriptedEvent, Step } from './script.ts'

/** The headers that a script adds to an answer. */
export function scriptedHeaders(step: Step): Record<string, string> {
  return {
    ...(step.retry_after === undefined ? {} : { 'retry-after': String(step.retry_after) }),
    ...(step.content_type === undefined ? {} : { 'content-type': step.content_type }),
    ...step.headers,
  }
}

/** An event as the script has it. Where events are named, one without a name takes the `type` of its data. */
export function scriptedFrame(scripted: ScriptedEvent, wire: SimulatorWire): Frame {
  if (typeof scripted === 'string') return { data: scripted }
  const { event, data, delay_ms, comment, raw } = scripted
  const type = wire === 'chat' ? undefined : asObject(data)?.['type']
  const name = event === undefined ? type : event
  return {
    ...(typeof name === 'string' && name !== '' ? { event: name } : {}),
    ...(data === undefined ? {} : { data: typeof data === 'string' ? data : JSON.stringify(data) }),
    ...(comment === undefined ? {} : { comment }),
    ...(raw === undefined ? {} : { raw }),
    ...(delay_ms === undefined ? {} : { delayMs: delay_ms }),
  }
}
