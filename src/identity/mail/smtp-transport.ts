import { findClientFault, OwnFault } from '../../outbound/own-fault/own-fault.ts'
import { MailError, type MailImage, type MailTransport } from './mail.ts'

/** Limits on the conversation with the mail server. */
const CONNECT_LIMIT_MS = 10_000
const SILENCE_LIMIT_MS = 20_000

/** The options of nodemailer that the query of a URL may have, with their values. They win over those in code there. */
const URL_OPTIONS: Readonly<Record<string, RegExp>> = {
  ignoreTLS: /^(?:true|false)$/,
  requireTLS: /^true$/,
  name: /^[\w.-]{1,253}$/,
  pool: /^(?:true|false)$/,
  maxConnections: /^\d{1,4}$/,
  maxMessages: /^\d{1,6}$/,
}

/** The options of a URL that are not taken: unknown, repeated, and those that weaken TLS (`requireTLS=false`). Pure. */
export function listRefusedSmtpOptions({ searchParams }: Pick<URL, 'searchParams'>): string[] {
  const names = [...searchParams.keys()]
  return names.filter((name, index) => {
    const rule = Object.hasOwn(URL_OPTIONS, name) ? URL_OPTIONS[name] : undefined
    return names.indexOf(name) !== index || rule?.test(searchParams.get(name) ?? '') !== true
  })
}

/**
 * Builds a transport over SMTP. `url` is `smtp://` or `smtps://` with user, password and the options of nodemailer in its
 * query, as far as they are allowed. A server that is not on this machine must offer TLS, because mails hold links that sign users in; an
 * `ignoreTLS=true` in the query lifts this for a relay in one's own network.
 */
export function buildSmtpTransport({ url, from }: { url: string; from: string }): MailTransport {
  const parsed = new URL(url)
  if (listRefusedSmtpOptions(parsed).length > 0) throw new Error('SMTP_URL has an option that is not taken')
  const { hostname, protocol, searchParams } = parsed
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  const options = {
    url,
    connectionTimeout: CONNECT_LIMIT_MS,
    greetingTimeout: CONNECT_LIMIT_MS,
    socketTimeout: SILENCE_LIMIT_MS,
    requireTLS: protocol === 'smtp:' && !isLocal && searchParams.get('ignoreTLS') !== 'true',
    disableFileAccess: true,
    disableUrlAccess: true,
  }
  // Only a process that sends mails loads the library.
  const open = async () => (await import('nodemailer')).createTransport(options)
  let opened: ReturnType<typeof open> | undefined
  const domain = /@([^>]+)>?$/.exec(from)?.[1] ?? 'localhost'
  return {
    send: async ({ id, to, subject, text, html, images = [], unsubscribe }) => {
      try {
        opened ??= open()
        await (await opened).sendMail({
          from,
          to: { name: '', address: to },
          subject,
          text,
          ...(html !== undefined && { html }),
          attachments: images.map(attach),
          // The same for each attempt, so that a server or reader recognizes a mail that was sent twice.
          messageId: `<${id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated', ...listUnsubscribe(unsubscribe) },
        })
      } catch (error) {
        throw toMailError(error)
      }
    },
    close: () => void opened?.then((transport) => transport.close()),
  }
}

/** The headers that stop mails by one click: RFC 2369 section 3.2, and RFC 8058, which needs HTTPS. Pure. */
export function listUnsubscribe(url: string | undefined): Record<string, string> {
  if (url === undefined) return {}
  const isOneClick = url.startsWith('https://')
  return {
    'List-Unsubscribe': `<${url}>`,
    ...(isOneClick && { 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }),
  }
}

/** An image of the HTML: a part beside it (RFC 2387), which programs do not list as an attachment. */
function attach({ id: cid, type, body }: MailImage) {
  const filename = `${cid.split('@', 1)[0]}.${type === 'image/png' ? 'png' : 'jpg'}`
  return { cid, filename, contentType: type, content: body, contentDisposition: 'inline' as const }
}

/** A reply of class 5 is final (RFC 5321 section 4.2.1), but a refused login may be corrected. */
function toMailError(error: unknown): MailError {
  const { code, responseCode } = error as { code?: string; responseCode?: number }
  const own = responseCode === undefined ? findClientFault(error) : undefined
  if (own) return new MailError(`own fault ${own}`, { isPermanent: false, ownFault: new OwnFault(own), cause: error })
  const isPermanent = responseCode !== undefined && responseCode >= 500 && code !== 'EAUTH'
  const parts = ['SMTP', code ?? 'failed', ...(responseCode === undefined ? [] : [responseCode])]
  return new MailError(parts.join(' '), { isPermanent, cause: error })
}
