import { Button, Group, Menu, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Icon } from '../../frame/icons.tsx'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { List } from '../../parts/list.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { withTag } from '../../parts/row-edit.ts'
import { guardSection, Sections } from '../../parts/sections.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Instant } from '../../parts/time.tsx'
import { EditTarget } from './edit-target.tsx'
import { useProvisioned, useProvisionedColumns } from './provisioned-rows.tsx'
import { Redrive } from './redrive.tsx'
import { ActivateTarget, DeleteTarget, RotateTargetSecret, StartJob } from './target-questions.tsx'
import { TargetStreams } from './target-streams.tsx'
import { nameOf, type Target } from './targets.ts'

/** One target: what it is, what was sent to it, and the jobs that bring it up to date. */
export function TargetScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/provisioning/$id' })
  const target = useQuery({
    queryKey: ['target', id],
    queryFn: ({ signal }) => withTag(api.provisioning.provisioningTargetFindOne({ path: { id }, signal })),
  })
  const row = target.data?.data
  return (
    <Page
      title={row ? nameOf(row) : t('provisioning.one')}
      parent={{ label: t('provisioning.title'), to: '/provisioning' }}
      lead={row && <Status name={row.is_actived ? 'active' : 'inactive'} />}
      actions={
        row && (
          <>
            <Actions target={row} />
            <ApiCall
              operation="provisioning.provisioningTargetFindOne"
              method="GET"
              path={`/api/v3/provisioning/target/${id}`}
            />
          </>
        )
      }
    >
      <Loaded query={target} height={200}>
        {({ data }) => <Detail target={data} />}
      </Loaded>
    </Page>
  )
}

function Detail({ target }: { target: Target }) {
  const { t } = useTranslation()
  const { document_id, url, protocol, description, created_at, deleted_at } = target
  return (
    <>
      <Facts
        lines={[
          [t('provisioning.id'), <CopyText key="id" text={document_id} />],
          [t('provisioning.url'), <CopyText key="url" text={url} />],
          [t('provisioning.protocol'), t(`provisioning.protocol.${protocol}`)],
          description === null ? undefined : [t('create.description'), description],
          [t('deliveries.created'), <Instant key="created" at={created_at} />],
          deleted_at === null ? undefined : [t('provisioning.deleted'), <Instant key="deleted" at={deleted_at} />],
          [
            t('provisioning.jobs'),
            <TextLink key="jobs" to="/provisioning/jobs" search={{ target: document_id }} size="sm">
              {t('provisioning.open-jobs')}
            </TextLink>,
          ],
          [t('provisioning.payload'), t('provisioning.told')],
        ]}
      />
      <Sections
        sections={[
          guardSection(
            'provisioning-delivery:find-all',
            ['deliveries', t('deliveries.title')],
            <Deliveries target={document_id} />,
          ),
          guardSection(
            'provisioning-target:find-streams',
            ['streams', t('streams.title')],
            <TargetStreams target={document_id} />,
          ),
        ]}
      />
    </>
  )
}

function Deliveries({ target }: { target: string }) {
  const { t } = useTranslation()
  const rows = useProvisioned([`target|eq|${target}`])
  const columns = useProvisionedColumns(rows.shown)
  return (
    <Stack gap="xs">
      <Group justify="flex-end">
        <Button
          component={Link}
          to={`/provisioning/deliveries?target=${target}&status=dead_letter`}
          variant="default"
          size="compact-sm"
        >
          {t('provisioning.dead')}
        </Button>
      </Group>
      <List
        caption={t('deliveries.title')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={<Text size="sm">{t('provisioning.nothing-sent')}</Text>}
      />
    </Stack>
  )
}

type Asked = 'edit' | 'sync' | 'reconcile' | 'active' | 'rotate' | 'delete'

/** Actions that a menu holds. */
const RARE: ReadonlySet<Asked> = new Set(['reconcile', 'rotate', 'delete'])

function Actions({ target }: { target: Target }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [asked, setAsked] = useState<Asked>()
  if (target.deleted_at !== null) return null
  const offered: (readonly [Asked, string, string])[] = [
    ['edit', t('provisioning.edit'), 'provisioning-target:update'],
    ['sync', t('provisioning.sync'), 'provisioning-target:sync'],
    ['reconcile', t('provisioning.reconcile'), 'provisioning-target:reconcile'],
    ['active', target.is_actived ? t('webhooks.deactivate') : t('webhooks.activate'), 'provisioning-target:active'],
    ['rotate', t('webhooks.rotate'), 'provisioning-target:rotate-secret'],
    ['delete', t('webhooks.delete'), 'provisioning-target:delete'],
  ]
  const shown = offered.filter(
    ([name, , permission]) => may(permission) && (name !== 'rotate' || target.protocol === 'webhook'),
  )
  const close = () => setAsked(undefined)
  return (
    <>
      {shown
        .filter(([name]) => !RARE.has(name))
        .map(([name, label]) => (
          <Button key={name} variant="default" size="compact-sm" onClick={() => setAsked(name)}>
            {label}
          </Button>
        ))}
      {may('provisioning-target:redrive') && <Redrive target={target.document_id} />}
      <Menu position="bottom-end">
        <Menu.Target>
          <Button size="compact-sm" variant="default" aria-label={t('webhooks.more')}>
            <Icon name="more" />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {shown
            .filter(([name]) => RARE.has(name))
            .map(([name, label]) => (
              <Menu.Item key={name} onClick={() => setAsked(name)}>
                {label}
              </Menu.Item>
            ))}
        </Menu.Dropdown>
      </Menu>
      {asked === 'edit' && <EditTarget target={target} onClose={close} />}
      {(asked === 'sync' || asked === 'reconcile') && <StartJob target={target} kind={asked} onClose={close} />}
      {asked === 'active' && <ActivateTarget target={target} onClose={close} />}
      {asked === 'rotate' && <RotateTargetSecret target={target} onClose={close} />}
      {asked === 'delete' && <DeleteTarget target={target} onClose={close} />}
    </>
  )
}
