import { buildPasswordCommand } from '../identity/pages/sign-in/start-page.ts'
import type { App } from './app.ts'
import { readPort } from './config/base-url.ts'
import type { Config } from './config/config.ts'
import { decideMailWay } from './part/mail-transport.ts'

/** The administrator that the first start in development creates. */
export interface FirstAdministrator {
  email: string
  /** Only when it was generated now: printed once, not stored. */
  password: string | undefined
  /** The rule that a given password breaks, which development takes. */
  weakness: string | undefined
}

/** Prints the address of the operator console in development, before all else: it answers from here on. */
export function printConsole({
  app,
  config,
  print,
}: {
  app: App
  config: Config
  print: (line: string) => void
}): void {
  if (config.appEnv === 'development' && config.roles.includes('api'))
    print(`Operator console: ${app.baseUrl()}/console`)
}

/** Prints where the service listens, and in development how to sign in and what to try. */
export function printStart(parts: {
  app: App
  admin: FirstAdministrator | undefined
  config: Config
  print: (line: string) => void
  seconds: number
  commands: readonly string[]
}): void {
  const { app, admin, config, print, seconds, commands } = parts
  const { host } = config
  const port = readPort(app.server) ?? config.port
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const outside = config.baseUrl === undefined ? app.baseUrl() : `http://${address}, as ${app.baseUrl()}`
  const detail = config.baseUrl === undefined ? `${address}, ready` : 'ready'
  print(`Signalbox listens on ${outside} (${detail} in ${seconds.toFixed(1)} s). API reference: ${app.baseUrl()}/docs`)
  if (config.appEnv !== 'development') return
  if (admin) printSignIn(admin, print)
  else print(`Sign in as ${config.adminEmail}. Lost the password? ${buildPasswordCommand(config.adminEmail)}`)
  print(`  In a browser: ${app.baseUrl()}/auth/`)
  if (decideMailWay(config) === 'kept') print(`  Mails, which are kept here and not sent: ${app.baseUrl()}/auth/mail`)
  print(`  First steps${hasOwnRealtime(config) ? ', and the keys of the realtime server' : ''}: ${app.baseUrl()}/`)
  print(`  API reference: ${app.baseUrl()}/docs`)
  print(
    `  curl -s -X POST ${app.baseUrl()}/api/v3/auth/login/local -H 'Content-Type: application/json' -d '{"email":"${config.adminEmail}","password":"..."}'`,
  )
  if (commands.length > 0) print(commands.length === 1 ? 'A command to try:' : 'Three commands to try:')
  for (const command of commands) print(`  ${command}`)
  print('Stop with Ctrl-C.')
}

/** Whether the embedded realtime server has a generated application, whose keys are in no setting. */
const hasOwnRealtime = ({ realtime, roles }: Config) =>
  realtime.kind === 'embedded' && realtime.keys === undefined && roles.includes('api')

/** Prints the first administrator, with its password when that was generated. */
export function printSignIn({ email, password, weakness }: FirstAdministrator, print: (line: string) => void): void {
  if (password) print(`Sign in as ${email} with the password ${password} (shown this once).`)
  else print(`Sign in as ${email} with the password of SIGNALBOX_ADMIN_PASSWORD.`)
  if (weakness) print(`  Outside development that password is refused: it ${weakness}.`)
}
