import { z } from 'zod'
import { oneOf } from '../catalog/kinds.ts'
import { profileKeys } from '../catalog/profile-keys.ts'
import { profileNames } from '../catalog/profiles.ts'

const { reasoning, replay_thought: replayThought } = profileKeys.shape

/** A profile of the configuration file: the profile that it extends, and the keys of `profile-keys.ts` that differ from it. */
export const profileMap = z
  .strictObject({
    extends: oneOf(profileNames).describe("The named profile it starts from. Default: the wire's own."),
    ...profileKeys.shape,
    reasoning: reasoning.partial().describe(reasoning.description!),
    replay_thought: replayThought.partial().describe(replayThought.description!),
  })
  .partial()

export type ProfileMap = z.output<typeof profileMap>
