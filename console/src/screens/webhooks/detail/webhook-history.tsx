import { Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { CopyText } from '../../../parts/copy-text.tsx'
import { List, useRows } from '../../../parts/list.tsx'
import { NoPermission } from '../../../parts/problem.tsx'
import type { Column } from '../../../parts/row-table.tsx'
import { Status } from '../../../parts/status.tsx'
import { TextLink } from '../../../parts/text-link.tsx'
import { Time } from '../../../parts/time.tsx'

type Entry = Schemas['AuditEntry']

/** Who did what with a webhook: the entries of the audit log about it. */
export function WebhookHistory({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { may } = useAccess()
  if (!may('audit-log:find-all')) return <NoPermission permission="audit-log:find-all" />
  return <Entries id={webhook.document_id} />
}

function Entries({ id }: { id: string }) {
  const { t } = useTranslation()
  const filters = [`target|eq|${id}`]
  const rows = useRows<Entry>({
    key: ['audit', filters],
    load: (page, signal) => api.audit.auditLogFindAll({ query: { filters, sort: '-created_at', ...page }, signal }),
    isNewestFirst: true,
  })
  const columns: Column<Entry>[] = [
    { label: t('audit.time'), cell: ({ created_at }) => <Time at={created_at} /> },
    { label: t('audit.action'), cell: ({ action }) => <Text size="sm">{action}</Text> },
    {
      label: t('audit.user'),
      cell: ({ user }) =>
        user === null ? (
          '–'
        ) : (
          <TextLink to="/users/$id" params={{ id: user }} size="sm" className="mono">
            {user.slice(0, 8)}
          </TextLink>
        ),
    },
    { label: t('audit.outcome'), cell: ({ outcome }) => <Status name={outcome} /> },
    {
      label: t('problem.request'),
      cell: ({ request_id }) => (request_id === null ? '–' : <CopyText text={request_id} isShort />),
    },
  ]
  return (
    <List
      caption={t('webhooks.tab.history')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Text size="sm">{t('audit.empty')}</Text>}
    />
  )
}
