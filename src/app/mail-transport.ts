import { buildKeepingTransport } from '../mail/kept-mail.ts'
import type { MailTransport } from '../mail/mail.ts'
import { buildSmtpTransport } from '../mail/smtp-transport.ts'
import type { Database } from '../postgres/database.ts'
import type { Config } from './config.ts'

/** How mails leave: by a mail server, kept in development and tests, or not at all. */
export type MailWay = 'smtp' | 'kept' | 'none'

/** The way of mails in an environment (docs/contract/sessions.md#mail). Pure. */
export function decideMailWay({ appEnv, smtp }: Pick<Config, 'appEnv' | 'smtp'>): MailWay {
  if (smtp) return 'smtp'
  return appEnv === 'development' || appEnv === 'test' ? 'kept' : 'none'
}

/** Builds the transport of mails; undefined where none are sent. */
export function buildMailTransport(config: Pick<Config, 'appEnv' | 'smtp'>, db: Database): MailTransport | undefined {
  if (config.smtp) return buildSmtpTransport(config.smtp)
  return decideMailWay(config) === 'kept' ? buildKeepingTransport(db) : undefined
}
