import { buildKeepingTransport } from '../mail/kept-mail.ts'
import type { MailTransport } from '../mail/mail.ts'
import { loadMailTemplate } from '../mail/mail-template.ts'
import { buildSmtpTransport } from '../mail/smtp-transport.ts'
import { deriveColors } from '../pages/brand-color.ts'
import type { Database } from '../postgres/database.ts'
import type { Config } from './config.ts'

/** The templates of mails, in the colours of the brand. Throws an Error that names the setting, the rule and the remedy. */
export function loadTemplates({ mailTemplateDir, brandColor }: Pick<Config, 'mailTemplateDir' | 'brandColor'>) {
  const { accent: color, onAccent: onColor } = deriveColors(brandColor ?? BUILT_IN_COLOR).light
  return loadMailTemplate(mailTemplateDir, { color, onColor })
}

/** The accent of style.css. */
const BUILT_IN_COLOR = '#4f46e5'

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
