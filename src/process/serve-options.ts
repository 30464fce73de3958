import type { ConfigOptions } from '../config/load.ts'

export type ServeOptions = ConfigOptions & {
  /** What the start says on stdout is one line of JSON. */
  json?: boolean
  /** So many processes serve on one port (ruling X7). */
  workers?: number | undefined
}
