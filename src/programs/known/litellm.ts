import type { WireName } from '../../catalog/model.ts'
import type { Access } from '../program.ts'

/** The variables that litellm and the vendors' Python SDKs read: with /v1 for the one vendor, without for the other. */
export function litellmEnv({ origin, key }: Access, wire: WireName): Record<string, string> {
  return wire === 'messages'
    ? { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: origin, ANTHROPIC_API_BASE: origin }
    : { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${origin}/v1`, OPENAI_API_BASE: `${origin}/v1` }
}

/** A model of ours as those programs name it. */
export function litellmModel({ model }: Access, wire: WireName): string {
  return `${wire === 'messages' ? 'anthropic' : 'openai'}/${model}`
}
