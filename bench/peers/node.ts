import { join } from 'node:path'

/** The package that has the Node of a version for this platform, its headers included. */
export const nodePackage = `node-${process.platform}-${process.arch}`

/** The Node that was installed with a peer. */
export function nodeOf(home: string): string {
  return join(home, 'node_modules', nodePackage, 'bin/node')
}
