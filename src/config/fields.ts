import { z } from 'zod'
import { parseCredits } from '../accounts/credit.ts'
import { filled, oneOf, text } from '../catalog/kinds.ts'
import { profileKeys } from '../catalog/profile-keys.ts'
import { profileNames } from '../catalog/profiles.ts'
import { clientUrlMistake } from './client-url.ts'
import { noProxy, proxyMistake } from './egress.ts'
import { storeMistake } from './store-place.ts'
import * as values from './values.ts'

/*
 * The kinds of values in the configuration file; `schema.ts` describes each setting. Messages say what is valid. They
 * never quote the value, which may be a key.
 */

/** Reports a mistake, unless it is undefined. @param path the path of the field, relative to the checked value */
export function complain(context: z.RefinementCtx, mistake: string | undefined, path: PropertyKey[] = []): void {
  if (mistake) context.addIssue({ code: 'custom', message: mistake, path })
}

/** Makes a text field. @param mistakeOf returns the mistake in a value, or undefined */
const sound = (mistakeOf: (value: string) => string | undefined, kind = text()) =>
  kind.superRefine((value, context) => complain(context, mistakeOf(value)))

/**
 * Makes a field for a duration between two bounds. Its value is in milliseconds.
 * @param most at most 24 days, because a longer duration overflows the 31 bits of Node's timers
 */
export const duration = (least: string, most: string) => {
  const error = `must be a duration of ${least} to ${most}, such as 500ms, 30s, 5m, 1h or 1d; a bare number counts as ms`
  const [leastMs, mostMs] = [values.parseDuration(least), values.parseDuration(most)]
  return z
    .union([z.int({ error }), z.string().regex(/^\d+(\.\d+)?(ms|s|m|h|d)$/, { error })], { error })
    .transform(values.parseDuration)
    .refine((ms) => ms >= leastMs && ms <= mostMs, { error })
}

export const timeZone = sound(values.timeZoneMistake)

/** Makes a field for credits. Its value is in nano-credits. @param error the message, with an example */
export const decimal = (error: string | ((issue: { input?: unknown }) => string)) =>
  z
    .union([z.string().regex(/^\d{1,9}(\.\d{1,9})?$/, { error }), z.number().max(999_999_999, { error })], { error })
    // This refuses negative numbers, more than nine decimals, and small numbers that JavaScript writes as `1e-7`.
    .refine((value) => /^\d+(\.\d{1,9})?$/.test(String(value)), { error })
    .transform((value) => parseCredits(String(value)))

export const filePath = filled('must be the path of a file')
export const folderPath = filled('must be the path of a folder')
export const storePlace = sound(storeMistake)

export const textMap = z.record(z.string(), text(), { error: 'must be a map of texts' })

const headersBut = (taken?: ReadonlySet<string>) =>
  z.record(z.string(), text()).superRefine((headers, context) => {
    for (const [name, value] of Object.entries(headers))
      complain(context, values.headerMistake(name, value, taken), [name])
  })

/** Headers of requests to an upstream, or to a collector. */
export const headers = headersBut()
export const headersToCollector = headersBut(values.collectorHeaders)

/** The name of the header in which a key is sent. */
export const keyHeader = sound(values.keyHeaderMistake).transform((value) => value.toLowerCase())

export const providerKey = sound(
  // `filled` below reports an empty key.
  (value) => (value === '' ? undefined : values.keyMistake(value)),
  filled('must not be empty; where the upstream asks for none, write any text'),
)

export const webhookSecret = sound(values.webhookSecretMistake)

/** An address to listen on. */
export const address = sound(
  values.addressMistake,
  text('must be host:port, such as 127.0.0.1:8080 or [::1]:8080'),
).transform(values.parseAddress)

/** The address of a client or a proxy, or a range of addresses. */
export const network = sound(values.networkMistake)

export const baseUrl = sound(values.baseUrlMistake).transform((value, context) =>
  context.issues.length > 0 ? z.NEVER : values.parseBaseUrl(value),
)
/** The path of a URL, from the root of its host. */
const requestPath = sound(values.pathMistake)
/** One path, or a path for JSON answers and a path for streams. */
export const requestPaths = z.union(
  [
    requestPath,
    z.strictObject({
      whole: requestPath.describe('The path of requests for a JSON answer.'),
      stream: requestPath.describe('The path of requests for a stream.'),
    }),
  ],
  { error: 'must be a path, or a map of `whole` and `stream`' },
)
const proxyUrl = sound((value) => (value === noProxy ? undefined : proxyMistake(value)))

/** The keys that say how a server is reached (`EgressRoute`). @param server the server, as words of their descriptions */
export const egressKeys = (server: string) => ({
  proxy: proxyUrl
    .optional()
    .describe(
      `The proxy for requests to ${server}, \`http://user:password@host:port\`, or \`none\` for no proxy. Default: what \`HTTPS_PROXY\`, \`HTTP_PROXY\` and \`NO_PROXY\` say.`,
    ),
  ca_file: filePath
    .optional()
    .describe(
      'A file with CA certificates in PEM. They replace the certificates of the system for connections to the server and to a proxy in front of it.',
    ),
})

export const publicUrl = sound(values.publicUrlMistake)
export const clientUrl = sound(clientUrlMistake)
export const collectorUrl = sound(values.endpointMistake)
export const webhookUrl = sound(values.webhookMistake)

const { reasoning, replay_thought: replayThought } = profileKeys.shape

/** A profile in the file: the profile that it extends, and the keys of `profile-keys.ts` that it overrides. */
export const profileMap = z
  .strictObject({
    extends: oneOf(profileNames).describe(
      "The named profile that this one extends. Default: the wire's plain profile.",
    ),
    ...profileKeys.shape,
    reasoning: reasoning.partial().describe(reasoning.description!),
    replay_thought: replayThought.partial().describe(replayThought.description!),
  })
  .partial()

export type ProfileMap = z.output<typeof profileMap>
