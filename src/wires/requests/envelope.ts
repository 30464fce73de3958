import { splice } from '../../bytes/json.ts'
import { setMembers } from '../../bytes/json-edit.ts'
import type { ProfileValues } from '../../catalog/profile.ts'
import { ClientBody } from './client-body.ts'

type Envelope = NonNullable<ProfileValues['envelope']>

/**
 * Converts the body of a messages request for a cloud that has the model's name in the path. The client's own
 * `anthropic_version` and `anthropic_beta` are replaced or removed, because a beta may raise the price (ruling C7).
 * @param betas the value of the betas header, separated by commas
 */
export function enclose(bytes: Buffer, { version, omits, betas: where }: Envelope, betas: string | undefined): Buffer {
  const body = new ClientBody(bytes)
  const listed = (betas ?? '').split(',').flatMap((beta) => beta.trim() || [])
  const values = new Map<string, string | undefined>([
    ...omits.map((name) => [name, undefined] as const),
    ['anthropic_version', JSON.stringify(version)],
    ['anthropic_beta', where === 'body' && listed.length > 0 ? JSON.stringify(listed) : undefined],
  ])
  return splice(bytes, setMembers(body.range, body.members, values))
}
