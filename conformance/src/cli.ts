import { loadCases, pairsOf } from './load-cases.ts'

const [command = 'help'] = process.argv.slice(2)
if (command === 'check') {
  const cases = loadCases()
  for (const one of cases) console.log(`${one.level.padEnd(6)} ${one.id}, ${pairsOf(one).length} pairs`)
}
