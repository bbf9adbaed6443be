import { type Command, InvalidArgumentError, Option } from 'commander'
import { systemClock } from '../../base/clock.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { createSecret } from '../../outbound/signature.ts'
import { parseId } from '../option/option.ts'
import { print, printError } from '../print/print.ts'
import { toPrintableLine } from '../print/printable.ts'
import {
  addClientOptions,
  addSecretOptions,
  type ClientOptions,
  findSigningSecret,
  openClient,
  type SecretOptions,
} from './client-options.ts'
import { type EventPatterns, parseEventPatterns } from './event-pattern.ts'

const printNote = (line: string) => printError(toPrintableLine(line))

interface ListenOptions extends ClientOptions, SecretOptions {
  forward?: string
  events?: EventPatterns
  account?: string
  pull?: string
  nack: boolean
  printJson: boolean
}

const EXAMPLES = `
It polls the service for new events, so it needs no webhook and no access to this machine from outside. Events of reads (GET)
are recorded only while an active webhook subscribes to them.

Examples:
  $ signalbox listen --forward http://localhost:4000/hook
  $ signalbox listen --forward http://localhost:4000/hook --events 'contract.*,webhook.test'
  $ signalbox listen --print-json | jq .data
  $ signalbox listen --pull <id of a webhook> --forward http://localhost:4000/hook`

/** Adds `signalbox listen`. */
export function addListenCommand(program: Command): void {
  const command = program
    .command('listen')
    .description('print the events of a running service as they happen, and forward them, signed, to your receiver')
    .option('--forward <url>', 'URL to post each event to, as a webhook would receive it', parseForwardUrl)
    .option('--events <list>', 'event types and patterns, comma-separated (default: all)', parsePatterns)
    .option('--account <id>', 'only events of this account', parseId)
    .addOption(
      new Option(
        '--pull <webhook>',
        'pull the deliveries of this webhook, and acknowledge those that --forward answers 2xx',
      )
        .argParser(parseId)
        .conflicts(['events', 'account', 'secret', 'secretFile']),
    )
    .option(
      '--nack',
      'with --pull: give back at once what --forward does not answer 2xx, five attempts in all, in place of the retry schedule',
      false,
    )
    .option('--print-json', 'print each envelope as a line of JSON; everything else goes to standard error', false)
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('signalbox listen --help lists the options.')
  addSecretOptions(command, ', else a new one, shown at the start')
  addClientOptions(command).action(runListen)
}

async function runListen(options: ListenOptions, command: Command): Promise<void> {
  if (options.nack && (options.pull === undefined || options.forward === undefined))
    command.error('error: --nack needs --pull and --forward')
  const { listen, listenByPull } = await import('./listen-session.ts')
  const secret = options.pull === undefined ? findSigningSecret(options) : undefined
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  // The reader of standard output may exit first: signalbox listen | head -1
  process.stdout.on('error', () => stop.abort())
  const deps = {
    client: openClient(options, stop.signal),
    clock: systemClock,
    ids: buildIdMaker(systemClock, systemRandom),
    out: print,
    note: options.printJson ? printNote : print,
  }
  const shared = {
    ...(options.forward !== undefined && { forwardUrl: options.forward }),
    ...{ printJson: options.printJson, signal: stop.signal },
  }
  try {
    if (options.pull !== undefined)
      return await listenByPull(
        { ...deps, lastClient: openClient(options) },
        { ...shared, webhook: options.pull, givesBack: options.nack },
      )
    await listen(deps, {
      ...shared,
      patterns: options.events ?? parseEventPatterns(undefined),
      ...(options.account !== undefined && { account: options.account }),
      secret: secret ?? createSecret(systemRandom),
      isSecretNew: secret === undefined,
    })
  } catch (error) {
    if (!stop.signal.aborted) throw error
  }
}

function parseForwardUrl(text: string): string {
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new InvalidArgumentError('It must be an http or https URL.')
  if (url.username || url.password) throw new InvalidArgumentError('It must hold no user or password.')
  return url.href
}

function parsePatterns(text: string): EventPatterns {
  try {
    return parseEventPatterns(text)
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`)
  }
}
