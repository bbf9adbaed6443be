import type { Command } from 'commander'
import { FatalError } from '../../app/log/fatal.ts'
import { systemClock } from '../../base/clock.ts'
import { collect, parseId, parseNumber } from '../option/option.ts'
import { print } from '../print/print.ts'
import { addClientOptions, type ClientOptions, openClient } from './client-options.ts'
import { replayMany, replayOne } from './replay-dispatches.ts'

interface ReplayOptions extends ClientOptions {
  filter?: string[]
  confirmDuplicate: boolean
  dryRun: boolean
  limit?: number
  wait: boolean
}

const EXAMPLES = `
A replay is one POST without automatic retries. What is success, pending or retrying is posted again only with
--confirm-duplicate: its event may have arrived. Filters are those of GET /api/v3/webhook/dispatch; all have to hold.

Examples:
  $ signalbox replay 0199a4a5-0000-7000-8000-000000000003 --wait
  $ signalbox replay --filter 'status|eq|exhausted' --dry-run
  $ signalbox replay --filter 'status|in|exhausted,failed' --filter 'created_at|gte|2026-09-11T00:00:00Z' --wait`

/** Adds `signalbox replay`. */
export function addReplayCommand(program: Command): void {
  const command = program
    .command('replay')
    .argument('[dispatch]', 'the document_id of one dispatch', parseId)
    .description('replay a dispatch, or all that match filters')
    .option('--filter <filter>', "'<field>|<operator>|<values>'; may be repeated", collect)
    .option('--confirm-duplicate', 'also replay deliveries that may have been received', false)
    .option('--dry-run', 'with --filter: print the counts, and change nothing', false)
    .option('--limit <n>', 'with --filter: at most this many, oldest first, up to 10000', parseNumber(1, 10_000))
    .option('--wait', 'wait until it has ended; exit 1 when it failed', false)
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('signalbox replay --help lists the options.')
  addClientOptions(command).action(runReplay)
}

async function runReplay(dispatchId: string | undefined, options: ReplayOptions): Promise<void> {
  const { filter: filters = [], confirmDuplicate, dryRun, limit, wait } = options
  if ((dispatchId === undefined) === (filters.length === 0))
    throw new FatalError('Give the id of one dispatch, or one --filter or more.')
  if (dispatchId !== undefined && (dryRun || limit !== undefined))
    throw new FatalError('--dry-run and --limit need --filter. Leave them out for a single dispatch.')
  const deps = { client: openClient(options), clock: systemClock, print }
  if (dispatchId !== undefined) return replayOne(deps, { dispatchId, confirmDuplicate, wait })
  await replayMany(deps, { filters, confirmDuplicate, dryRun, wait, ...(limit !== undefined && { limit }) })
}
