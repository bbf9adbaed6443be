import { chooseRequestTexts } from '../../../base/language/request-language.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject, TimestampSchema, UuidSchema } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import { listKeptMails } from '../../mail/kept-mail.ts'
import type { Brand } from '../brand/brand.ts'
import { buildKeptMailsPage } from './kept-mail-page.ts'

const KEPT_MAIL_PATH = '/auth/mail'

const KeptMailRow = namedObject('KeptMail', {
  document_id: UuidSchema,
  to: Type.String(),
  subject: Type.String(),
  text: Type.String(),
  created_at: TimestampSchema,
})

/** The kept mails of development (docs/contract/sessions.md#mail). They sign users in: only this machine reads them. */
export const keptMailRoutes: Routes<{ brand: Brand }> = [
  defineRoute(
    {
      method: 'GET',
      path: KEPT_MAIL_PATH,
      resource: 'mail',
      action: 'find-kept',
      accountScope: 'none',
      access: 'public',
      event: 'none',
      summary: 'Read the mails that were kept and not sent (development)',
      data: Type.Array(KeptMailRow),
      problems: ['not_found'],
    },
    async (deps: { brand: Brand }, { db, headers }) => {
      const mails = await listKeptMails(db)
      if (headers.accept?.includes('text/html'))
        return buildKeptMailsPage(deps.brand, chooseRequestTexts(headers), mails)
      return {
        data: mails.map(({ id, to, subject, text, createdAt }) => ({
          document_id: id,
          to,
          subject,
          text,
          created_at: createdAt.toISOString(),
        })),
        message: 'Mails.',
      }
    },
  ),
]
