import { join } from 'node:path'

/** The package with a version of Node for this platform, including its headers. */
export const nodePackage = `node-${process.platform}-${process.arch}`

/** The Node that was installed with a peer. */
export function nodeOf(home: string): string {
  return join(home, 'node_modules', nodePackage, 'bin/node')
}
