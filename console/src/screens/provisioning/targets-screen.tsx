import { Button, Stack, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { Page } from '../../parts/page.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { Sections } from './sections.tsx'
import { nameOf, type Target } from './targets.ts'

/** The platforms that receive changes of users. */
export const TargetsScreen = guardScreen('provisioning-target:find-all', 'provisioning.title', Targets)

function Targets() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const rows = useRows({
    key: ['targets'],
    load: (page, signal) =>
      api.provisioning.provisioningTargetFindAll({ query: { sort: '-created_at', ...page }, signal }),
  })
  const columns: Column<Target>[] = [
    {
      label: t('webhooks.name'),
      opens: true,
      cell: (row) => (
        <Stack gap={0} miw={180}>
          <TextLink to="/provisioning/$id" params={{ id: row.document_id }} size="sm" fw={600}>
            {nameOf(row)}
          </TextLink>
          <Text size="xs" c="dimmed" className="wrap">
            {row.url}
          </Text>
        </Stack>
      ),
    },
    { label: t('provisioning.protocol'), cell: ({ protocol }) => t(`provisioning.protocol.${protocol}`) },
    { label: t('webhooks.state'), cell: ({ is_actived }) => <Status name={is_actived ? 'active' : 'inactive'} /> },
    { label: t('webhooks.updated'), cell: ({ updated_at }) => <Time at={updated_at} /> },
  ]
  const create = may('provisioning-target:create') && (
    <Button component={Link} to="/provisioning/new" size="compact-md">
      {t('provisioning.new')}
    </Button>
  )
  return (
    <Page
      title={t('provisioning.title')}
      lead={t('provisioning.lead')}
      actions={
        <>
          {create}
          <ApiCall
            operation="provisioning.provisioningTargetFindAll"
            method="GET"
            path="/api/v3/provisioning/target"
            query={{ sort: '-created_at' }}
          />
        </>
      }
    >
      <Sections current="provisioning.targets" />
      <List
        caption={t('provisioning.targets')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={
          <Stack align="center">
            <Text size="sm">{t('provisioning.empty')}</Text>
            {create}
          </Stack>
        }
      />
    </Page>
  )
}
