import type { Agent } from './agents/agent.ts'

/**
 * Returns the agents that the command line names. With another word, or without any if `usual` is empty, prints the
 * usage and ends the process with status 2.
 *
 * @param script the script's name in this folder, for the usage
 * @param usual the names of the agents if the command line has none
 */
export function chooseAgents(agents: readonly Agent[], script: string, usual: readonly string[]): Agent[] {
  const words = process.argv.slice(2)
  const names = words.length > 0 ? words : usual
  const known = agents.map(({ client }) => client)
  if (names.length > 0 && names.every((name) => known.includes(name)))
    return agents.filter(({ client }) => names.includes(client))
  console.error(`node bin/node.mjs clients/${script} ${usual.length > 0 ? '[AGENT …]' : 'AGENT …'}

  Agents: ${known.join(', ')}`)
  process.exit(2)
}
