import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { type Command, InvalidArgumentError } from 'commander'
import type { VerificationKeys } from '../../../packages/webhooks/src/verify-delivery.ts'
import { FatalError } from '../../app/log/fatal.ts'
import { systemClock } from '../../base/clock.ts'
import { parseInstant } from '../../http/shape/instant.ts'
import { collect } from '../option/option.ts'
import { print } from '../print/print.ts'
import { parseHeaderLines, parseHeadersFile, verifyCapture } from './capture.ts'
import { addSecretOptions, findSecret, type SecretOptions } from './client-options.ts'

interface VerifyOptions extends SecretOptions {
  header?: string[]
  headersFile?: string
  bodyFile?: string
  now?: number
  publicKey?: string[]
}

const EXAMPLES = `
Nothing is sent anywhere. Give the headers of the request and its body byte by byte as it arrived. Both signature families are
verified where their headers are there: x-service-signature, and webhook-id with webhook-timestamp and webhook-signature.
With --public-key the asymmetric signature must be there and valid (the part v1a of webhook-signature), and the others are
verified only with a secret beside it.

Examples:
  $ signalbox verify --secret-file secret.txt --headers-file headers.txt --body-file body.json
  $ signalbox verify --secret-file secret.txt --header 'x-service-signature: t=1789120800,v1=5257...' < body.json
  $ signalbox verify --secret-file secret.txt --headers-file headers.txt --body-file body.json --now 2026-09-11T10:00:05Z
  $ signalbox verify --public-key whpk_11qY... --headers-file headers.txt --body-file body.json`

/** Adds `signalbox verify`. */
export function addVerifyCommand(program: Command): void {
  const command = program
    .command('verify')
    .description('verify a captured delivery offline, and print why it is invalid')
    .option('--header <line>', "one header, 'name: value'; may be repeated", collect)
    .option('--headers-file <file>', 'all headers: one "name: value" on a line, or a JSON object')
    .option('--body-file <file>', 'the raw body (default: standard input)')
    .option('--public-key <whpk>', 'the public key of the webhook; may be repeated during a rotation', collect)
    .option('--now <time>', 'the time of the check: ISO 8601 or Unix seconds (default: now)', parseTime)
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('signalbox verify --help lists the options.')
  addSecretOptions(command, '').action(runVerify)
}

async function runVerify(options: VerifyOptions): Promise<void> {
  const keys = findKeys(options)
  const headers = readHeaders(options)
  const body = options.bodyFile === undefined ? await readStandardInput() : readFile(options.bodyFile)
  const input = { keys, nowMs: options.now ?? systemClock.now() }
  const result = await verifyCapture({ headers, body }, input)
  if (result.ok) {
    const { envelope, families } = result
    print(`ok  ${envelope.type}  ${envelope.id}  attempt ${envelope.attempt}  (${families.join(', ')})`)
    return
  }
  if (result.hasExtraLineBreak)
    throw new FatalError(
      'signature_mismatch: the body ends with a line break that is not part of the signed body. Save the body without it.',
    )
  const hint = result.reason === 'timestamp_too_old' ? ' For an old capture, give the time it arrived with --now.' : ''
  throw new FatalError(`${result.reason}: ${result.message}${hint}`)
}

/** The keys of the webhook. Beside a public key a secret is taken from its options alone, not from the environment. */
function findKeys(options: VerifyOptions): VerificationKeys {
  const { publicKey } = options
  const isSecretGiven = options.secret !== undefined || options.secretFile !== undefined
  if (publicKey !== undefined && !isSecretGiven) return { publicKey }
  const secret = findSecret(options)
  if (secret === undefined)
    throw new FatalError(
      'There is no secret. Give the secret of the webhook with --secret-file, or in SIGNALBOX_WEBHOOK_SECRET.',
    )
  return { secret, ...(publicKey !== undefined && { publicKey }) }
}

function readHeaders({ header = [], headersFile }: VerifyOptions): Record<string, string[]> {
  if (header.length === 0 && headersFile === undefined)
    throw new FatalError('There are no headers. Give them with --headers-file, or each with --header.')
  const given = parseOrRefuse('--header', () => parseHeaderLines(header.join('\n')))
  if (headersFile === undefined) return given
  const text = readFile(headersFile).toString()
  // Options override the headers of the file.
  return { ...parseOrRefuse(headersFile, () => parseHeadersFile(text)), ...given }
}

function parseOrRefuse<Value>(where: string, parse: () => Value): Value {
  try {
    return parse()
  } catch (error) {
    throw new FatalError(`${where}: ${(error as Error).message}.`)
  }
}

function readFile(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new FatalError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

async function readStandardInput(): Promise<Buffer> {
  if (process.stdin.isTTY) throw new FatalError('There is no body. Give it with --body-file, or on standard input.')
  return buffer(process.stdin)
}

function parseTime(text: string): number {
  if (/^\d{1,11}$/.test(text)) return Number(text) * 1000
  const instant = parseInstant(text)
  if (!instant) throw new InvalidArgumentError('It must be like 2026-09-11T10:00:05Z, or Unix seconds.')
  return instant.getTime()
}
