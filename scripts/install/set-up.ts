import { join } from 'node:path'
import { startGateway } from '../../src/process/start.ts'
import { expect, newFolder, runBeside } from './tools.ts'

/** Runs the command that an operator sends to colleagues: it asks the named gateway and needs no configuration file. */
export async function trySetup(command: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const gateway = await startGateway({ store: join(newFolder('gateway'), 'triwire.db') })
  try {
    const line = [...command, 'setup', 'codex', '--url', gateway.url, '--key', gateway.demoKey!]
    const { status, stdout, text } = await runBeside(line, { cwd: newFolder('colleague'), env })
    const said = [`base_url = "${gateway.url}/v1"`, 'model = "sim-messages"', gateway.demoKey!]
    expect(status === 0 && said.every((one) => stdout.includes(one)), 'setup has asked the gateway', text)
    return `setup codex asked the gateway and printed ${stdout.trim().split('\n').length} lines`
  } finally {
    await gateway.close()
  }
}
