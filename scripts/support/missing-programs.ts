import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The facts about a machine that decide which programs it lacks. */
export type Machine = {
  isRoot: boolean
  env: Readonly<Record<string, string | undefined>>
  /** Whether the program can be started by this name. */
  has(program: string): boolean
  hasPostgres: boolean
}

/** A program that tests start. `users` is the file below `test` that each of these tests imports, or is. */
type NeededProgram = {
  name: string
  users: string
  isMissing(machine: Machine): boolean
  tests: string
  debian: string
}

const needed: readonly NeededProgram[] = [
  {
    name: 'PostgreSQL',
    users: 'support/postgres.ts',
    isMissing: ({ hasPostgres }) => !hasPostgres,
    tests: 'the tests of a store in PostgreSQL',
    debian: 'postgresql',
  },
  {
    name: 'runuser',
    users: 'support/postgres.ts',
    isMissing: ({ isRoot, hasPostgres, has }) => isRoot && hasPostgres && !has('runuser'),
    tests: 'the tests of a store in PostgreSQL, which root starts as another user,',
    debian: 'util-linux',
  },
  {
    name: 'Prometheus',
    users: 'support/prometheus.ts',
    isMissing: ({ has }) => !has('prometheus') || !has('promtool'),
    tests: 'the tests of a scrape',
    debian: 'prometheus',
  },
  ...(
    [
      ['openssl', 'support/certificates.ts', 'the tests of TLS', 'openssl'],
      ['pgrep', 'support/pgrep.ts', 'the tests that look for processes', 'procps'],
      ['prlimit', 'store/lock.test.ts', 'the tests of too few descriptors', 'util-linux'],
      ['bash', 'cli/completion.test.ts', 'the tests of completion', 'bash'],
    ] as const
  ).map(([name, users, tests, debian]) => ({
    ...{ name, users, tests, debian },
    isMissing: ({ has }: Machine) => !has(name),
  })),
]

/** Whether a program is left out on purpose, as `npm run check` leaves out PostgreSQL. */
const isLeftOut = (one: NeededProgram, { env }: Machine) =>
  one.users === 'support/postgres.ts' && env['TRIWIRE_TEST_POSTGRES'] === '0'

/**
 * Names each program that the selected tests start and that this machine does not have.
 * @param isUsed whether a selected test is this file below `test`, or imports it
 * @returns one line for each, with the package that has the program
 */
export function nameMissingPrograms(machine: Machine, isUsed: (file: string) => boolean): string[] {
  return needed
    .filter((one) => !isLeftOut(one, machine) && one.isMissing(machine) && isUsed(one.users))
    .map(
      ({ name, tests, debian }) =>
        `MISSING ${name}: without it ${tests} do not run. Install it: apt-get install ${debian}`,
    )
}

/** Folders of root's programs, such as `runuser`. Some environments leave them out of root's PATH. */
export const systemFolders = ['/usr/sbin', '/sbin']

/** This machine. */
export function lookAtMachine(): Machine {
  const { env } = process
  const folders = (env['PATH'] ?? '').split(delimiter).filter(Boolean).concat(systemFolders)
  const clusters = '/usr/lib/postgresql'
  return {
    isRoot: process.getuid?.() === 0,
    env,
    has: (program) => folders.some((folder) => isExecutable(join(folder, program))),
    hasPostgres: existsSync(clusters) && readdirSync(clusters).length > 0,
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
