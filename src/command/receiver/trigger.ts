import type { Command } from 'commander'
import { systemClock } from '../../base/clock.ts'
import { parseId } from '../option/option.ts'
import { print } from '../print/print.ts'
import { addClientOptions, type ClientOptions, openClient } from './client-options.ts'
import { triggerEvent } from './trigger-event.ts'

interface TriggerOptions extends ClientOptions {
  account?: string
  id?: string
  webhook?: string
}

const EXAMPLES = `
contract.create, contract.update and contract.delete happen to a contract made for this (or the one of --id: an update writes its
own name back, a delete deletes it). Event types of other services are published. For any other event it says which call
makes it.

Examples:
  $ signalbox trigger contract.update
  $ signalbox trigger contract.create --account 0199a4a5-0000-7000-8000-000000000001
  $ signalbox trigger webhook.test --webhook 0199a4a5-0000-7000-8000-000000000002
  $ signalbox trigger invoice.paid --id INV-7`

/** Adds `signalbox trigger`. */
export function addTriggerCommand(program: Command): void {
  const command = program
    .command('trigger')
    .argument('<event>', 'the event type: contract.update')
    .description('trigger a real event in a running service, and print its dispatches')
    .option('--account <id>', 'the account that owns the resource', parseId)
    .option('--id <id>', 'the resource')
    .option('--webhook <id>', 'the webhook to test, for webhook.test', parseId)
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('signalbox trigger --help lists the options.')
  addClientOptions(command).action(async (event: string, options: TriggerOptions) => {
    const { account, id, webhook } = options
    await triggerEvent(
      { client: openClient(options), clock: systemClock, print },
      {
        event,
        ...(account !== undefined && { account }),
        ...(id !== undefined && { id }),
        ...(webhook !== undefined && { webhook }),
      },
    )
  })
}
