import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import type { Command } from 'commander'
import { type ClientConfig, readClientConfig } from '../../app/config/client-config.ts'
import { VARIABLES } from '../../app/config/config-variables.ts'
import { FatalError } from '../../app/log/fatal.ts'
import { findUnsafeOwner } from '../../app/secret/private-file.ts'
import { type ApiClient, buildApiClient } from './api-client.ts'

/** The options of every command that calls a service. */
export interface ClientOptions {
  url?: string
  token?: string
}

/** Adds `--url` and `--token`. */
export function addClientOptions(command: Command): Command {
  return command
    .option('--url <url>', 'the service (default: SIGNALBOX_URL, else http://localhost:3000)')
    .option('--token <token>', 'API key or session JWT (default: SIGNALBOX_TOKEN, else the token of npm start)')
}

/** Parses an option by the rule of a setting. The error does not contain the value, which may be a secret. */
function parseAs<Value>(option: string, variable: { parse: (text: string) => Value }, text: string): Value {
  try {
    return variable.parse(text)
  } catch (error) {
    throw new FatalError(`${option} ${(error as Error).message}.`)
  }
}

/** The options by which a command takes the secret of a webhook. */
export interface SecretOptions {
  secret?: string
  secretFile?: string
}

/** Adds `--secret-file` and `--secret`. */
export function addSecretOptions(command: Command, fallback: string): Command {
  return command
    .option(
      '--secret-file <file>',
      `file with the secret of the webhook (default: SIGNALBOX_WEBHOOK_SECRET${fallback})`,
    )
    .option('--secret <whsec>', 'the secret itself; other users of this machine see it in the list of processes')
}

/** The secret of a webhook from the options, unchanged, else the environment. Throws a `FatalError`. */
export function findSecret({ secret, secretFile }: SecretOptions): string | undefined {
  if (secret !== undefined && secretFile !== undefined)
    throw new FatalError('--secret and --secret-file name two secrets. Give one of them.')
  if (secret !== undefined) return secret
  if (secretFile === undefined) return readClientConfig().webhookSecret
  try {
    return readFileSync(secretFile, 'utf8').trim()
  } catch (error) {
    throw new FatalError(`${secretFile} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

/** The secret, checked to be usable for signatures (docs/contract/webhooks.md#signature). */
export function findSigningSecret(options: SecretOptions): string | undefined {
  const secret = findSecret(options)
  const where = options.secretFile === undefined ? '--secret' : `The text of ${options.secretFile}`
  return secret === undefined ? undefined : parseAs(where, VARIABLES.SIGNALBOX_WEBHOOK_SECRET, secret)
}

/** Builds the client of a command from its options and the environment. Throws a `FatalError` when there is no token. */
export function openClient(options: ClientOptions, signal?: AbortSignal): ApiClient {
  const config = readClientConfig()
  const url = options.url === undefined ? config.url : parseAs('--url', VARIABLES.SIGNALBOX_URL, options.url)
  const token =
    options.token === undefined
      ? (config.token ?? readDemoToken(url, config))
      : parseAs('--token', VARIABLES.SIGNALBOX_TOKEN, options.token)
  return buildApiClient({ url, token, ...(signal && { signal }) })
}

/** The token that `npm start` left. Used for loopback URLs only, so that it is not sent to another machine. */
function readDemoToken(url: string, { demoTokenFiles }: ClientConfig): string {
  const remedy = 'Give one with --token or SIGNALBOX_TOKEN'
  if (!isLoopback(url)) throw new FatalError(`There is no token for ${url}. ${remedy}.`)
  for (const file of demoTokenFiles) {
    const token = readOwnFile(file, remedy)
    if (token !== undefined) return token
  }
  throw new FatalError(
    `There is no token. ${remedy}, or run this in the folder where npm start runs, or below it (it leaves one in ${demoTokenFiles[0]}).`,
  )
}

/** The text of a file of this user; undefined without one. Another user's token would act as that user. */
function readOwnFile(file: string, remedy: string): string | undefined {
  let descriptor: number | undefined
  try {
    descriptor = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
    const fault = findUnsafeOwner(fstatSync(descriptor), process.geteuid?.())
    if (fault === undefined) return readFileSync(descriptor, 'utf8').trim()
    throw Object.assign(new Error(fault), { code: fault })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A folder above may be closed to this user, or be no folder.
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new FatalError(`The token in ${file} cannot be read (${code}). ${remedy}.`)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || isLoopbackIpv4(hostname)
}

/** The whole name must be an address: 127.0.0.1.example is another host. */
function isLoopbackIpv4(hostname: string): boolean {
  return isIPv4(hostname) && hostname.startsWith('127.')
}
