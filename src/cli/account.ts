import { type Command, InvalidArgumentError } from 'commander'
import type { AccountRow } from '../accounts/book-rows.ts'
import { formatCredits, parseCredits } from '../accounts/credit.ts'
import { formatFields, formatTable, note, print } from './print.ts'
import { withStore } from './store.ts'

export function addAccountCommands(program: Command): void {
  const account = program.command('account').description('who pays: make, list, suspend and credit accounts')
  account
    .command('create <name>')
    .description('make an account')
    .option('--credit <credits>', 'credit it starts with, such as 12.5; else none', readFirstCredits)
    .action(async (name: string, { credit = 0n }: { credit?: bigint }, command: Command) => {
      show(command, await withStore(command, (books) => books.createAccount(name, credit), { create: true }))
    })
  account
    .command('list')
    .description('list all accounts')
    .action(async (_options, command: Command) => {
      const rows = (await withStore(command, (books) => books.listAccounts())).map(toData)
      print(command, rows, () => {
        const cells = rows.map(({ id, name, state, balance }) => [id, name, state, balance])
        return formatTable(['id', 'name', 'state', 'balance'], cells)
      })
    })
  account
    .command('show <account>')
    .description('show an account, by name or id')
    .action(async (name: string, _options, command: Command) => {
      show(command, await withStore(command, (books) => books.findAccount(name)))
    })
  account
    .command('suspend <account>')
    .description('refuse its requests; those that run are finished')
    .action(async (name: string, _options, command: Command) => {
      show(command, await withStore(command, (books) => books.setAccountState(name, 'suspended')))
    })
  account
    .command('activate <account>')
    .description('end its suspension')
    .action(async (name: string, _options, command: Command) => {
      show(command, await withStore(command, (books) => books.setAccountState(name, 'active')))
    })
  account
    .command('rename <account> <name>')
    .description('give it another name; its id, keys and entries stay')
    .action(async (account: string, name: string, _options, command: Command) => {
      show(command, await withStore(command, (books) => books.renameAccount(account, name)))
    })
  account
    .command('credit')
    .description('add credit, or correct it by a negative amount')
    .argument('<account>', 'name or id')
    .argument('<credits>', 'such as 12.5 or -3', readCredits)
    .requiredOption('--reference <text>', 'number of the payment: the same one again is not booked again')
    .action(async (name: string, credits: bigint, { reference }: { reference: string }, command: Command) => {
      const row = await withStore(command, async (books) => {
        const booked = await books.credit(name, credits, reference)
        if (booked === 'exists') note(command, 'it was booked before with this reference: nothing was added now')
        return books.findAccount(name)
      })
      show(command, row)
    })
}

function readCredits(text: string): bigint {
  try {
    return parseCredits(text)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

/** A correction of nothing is a typing error; later ones have a reference (ruling C8). */
function readFirstCredits(text: string): bigint {
  const credits = readCredits(text)
  if (credits < 0n) throw new InvalidArgumentError('An account cannot start below zero.')
  return credits
}

function show(command: Command, row: AccountRow): void {
  const data = toData(row)
  print(command, data, () => formatFields(data))
}

/** Holds live in the server's memory, where another process cannot see them: `held` is always "0" here. */
function toData({ id, name, state, balanceNanos }: AccountRow) {
  return { id, name, state, balance: formatCredits(balanceNanos), held: '0' }
}
