import { buildKeepingTransport } from '../../identity/mail/kept-mail.ts'
import type { MailTransport } from '../../identity/mail/mail.ts'
import { loadMailLogo } from '../../identity/mail/mail-logo.ts'
import { loadMailTemplate } from '../../identity/mail/mail-template.ts'
import { buildSmtpTransport } from '../../identity/mail/smtp-transport.ts'
import { deriveColors } from '../../identity/pages/brand/brand-color.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { Config } from '../config/config.ts'

type MailSettings = Pick<Config, 'mailTemplateDir' | 'brandColor' | 'mailLogoPath' | 'brandLogoPath'>

/** The templates of mails with the brand's colours and logo. Throws an Error with setting, rule and remedy. */
export function loadTemplates({ mailTemplateDir, brandColor, mailLogoPath, brandLogoPath }: MailSettings) {
  const { light, dark } = brandColor === undefined ? BUILT_IN_COLORS : deriveColors(brandColor)
  return loadMailTemplate(mailTemplateDir, {
    color: light.accent,
    onColor: light.onAccent,
    darkColor: dark.accent,
    darkOnColor: dark.onAccent,
    logo: loadMailLogo({ mail: mailLogoPath, brand: brandLogoPath }),
  })
}

/** The accents of style.css. */
const BUILT_IN_COLORS = {
  light: { accent: '#4f46e5', onAccent: '#ffffff' },
  dark: { accent: '#635bff', onAccent: '#ffffff' },
}

/** Transport of mails: a mail server, the store of development and tests, or none. */
export type MailWay = 'smtp' | 'kept' | 'none'

/** Transport of mails in an environment (docs/contract/sessions.md#mail). Pure. */
export function decideMailWay({ appEnv, smtp }: Pick<Config, 'appEnv' | 'smtp'>): MailWay {
  if (smtp) return 'smtp'
  return appEnv === 'development' || appEnv === 'test' ? 'kept' : 'none'
}

/** Builds the transport of mails; undefined where none are sent. */
export function buildMailTransport(config: Pick<Config, 'appEnv' | 'smtp'>, db: Database): MailTransport | undefined {
  if (config.smtp) return buildSmtpTransport(config.smtp)
  return decideMailWay(config) === 'kept' ? buildKeepingTransport(db) : undefined
}
