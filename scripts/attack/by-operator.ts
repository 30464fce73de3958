import { renameSync } from 'node:fs'
import type { Attack } from './attacker.ts'
import { bodyOf, paths } from './wires.ts'

/* Actions of an operator on a running server, while requests are under way. */

export const attacksByOperator: Attack[] = [
  {
    name: 'reloads',
    finding: 'B3',
    // An upstream comes and goes while requests wait for connections to it.
    async run(attacker) {
      const asking = attacker.loops(20, async (loop) => {
        const body = bodyOf('chat', `passing-${loop % 2 === 0 ? 'chat' : 'responses'}`, 'Hi', { stream: true })
        await attacker.post(paths.chat, body, { leaveMs: 500 })
        // While the model is gone a refusal takes no time at all, so the loop waits.
        await attacker.wait(50)
      })
      for (let i = 0; !attacker.signal.aborted; i++) {
        attacker.setting.writeConfig(i % 2 === 1)
        attacker.gateway.signal('SIGHUP')
        await attacker.wait(1_000)
      }
      await asking
      attacker.setting.writeConfig(true)
      attacker.gateway.signal('SIGHUP')
    },
  },
  {
    name: 'file-away',
    finding: 'B4',
    isAlone: true,
    async run(attacker) {
      const { configPath } = attacker.setting
      const away = `${configPath}.away`
      while (!attacker.signal.aborted) {
        renameSync(configPath, away)
        attacker.count()
        attacker.gateway.signal('SIGHUP')
        await attacker.wait(1_000)
        renameSync(away, configPath)
        attacker.gateway.signal('SIGHUP')
        await attacker.wait(500)
      }
    },
  },
  {
    name: 'signals',
    finding: 'B3',
    isAlone: true,
    run: (attacker) =>
      attacker.loops(1, async () => {
        attacker.count()
        attacker.gateway.signal('SIGHUP')
        await attacker.wait(20)
      }),
  },
]
