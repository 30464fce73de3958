import { hostname, userInfo } from 'node:os'

/** Who sits at the command line, as the audit names him. */
export function cliActor(): string {
  return `cli:${userName()}@${hostname()}`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // In a container a user may have no name.
    return `${process.getuid?.() ?? 'somebody'}`
  }
}
