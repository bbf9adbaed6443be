import { Button, Code, Group, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { SidePanel } from '../../parts/dialog.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { ReplayDialog } from '../../parts/replay-dialog.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Instant, Time } from '../../parts/time.tsx'
import { Attempts } from '../deliveries/attempts.tsx'
import { useTargetNames } from './targets.ts'

type Delivery = Schemas['ProvisioningDeliveryWithAttempts']

const ACTIVE: readonly string[] = ['pending', 'retrying']

/** The body of the next POST, as the contract has it (docs/contract/provisioning.md#provisioning-events). Pure. */
function buildBody({ event_id: id, type, created_at, attempts, data }: Delivery) {
  return { id, type, api_version: '2026-09-11', created_at, attempt: Math.max(1, attempts), data }
}

/** One delivery to a target, beside the ledger. */
export function ProvisionedDrawer() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/provisioning/deliveries/$id' })
  const navigate = useNavigate()
  const delivery = useQuery({
    queryKey: ['provisioned', 'one', id],
    queryFn: ({ signal }) => api.provisioning.provisioningDeliveryFindOne({ path: { id }, signal }),
    refetchInterval: ({ state }) => (ACTIVE.includes(state.data?.data.status ?? '') ? 2_000 : false),
  })
  const close = () => void navigate({ to: '/provisioning/deliveries', search: true })
  return (
    <SidePanel title={t('delivery.title')} isOpen onClose={close}>
      <Loaded query={delivery} height={200}>
        {({ data }) => <Detail delivery={data} />}
      </Loaded>
    </SidePanel>
  )
}

function Detail({ delivery }: { delivery: Delivery }) {
  const { t } = useTranslation()
  const { document_id, status, type, attempts_log } = delivery
  return (
    <Stack>
      <Group justify="space-between">
        <Group gap="xs">
          <Status name={status} />
          <Title order={3} size="h4">
            {type}
          </Title>
        </Group>
        <Group gap="xs">
          <Replay delivery={delivery} />
          <ApiCall
            operation="provisioning.provisioningDeliveryFindOne"
            method="GET"
            path={`/api/v3/provisioning/delivery/${document_id}`}
          />
        </Group>
      </Group>
      <Identity delivery={delivery} />
      <Attempts attempts={attempts_log} order={3} />
      <Title order={3} size="h5">
        {t('provisioning.payload')}
      </Title>
      <Text size="sm" c="dimmed">
        {t('provisioning.told')}
      </Text>
      <Code block className="wrap">
        {JSON.stringify(buildBody(delivery), null, 2)}
      </Code>
    </Stack>
  )
}

function Identity({ delivery }: { delivery: Delivery }) {
  const { t } = useTranslation()
  const names = useTargetNames()
  const { document_id, target, user, job, created_at, next_attempt_at, delivered_at } = delivery
  return (
    <Facts
      lines={[
        [t('delivery.id'), <CopyText key="id" text={document_id} />],
        [
          t('provisioning.one'),
          <TextLink key="target" to="/provisioning/$id" params={{ id: target }} size="sm">
            {names.get(target) ?? target}
          </TextLink>,
        ],
        [
          t('users.one'),
          <TextLink key="user" to="/users/$id" params={{ id: user }} size="sm">
            {delivery.data.user.email}
          </TextLink>,
        ],
        [
          t('provisioning.stream'),
          <TextLink key="stream" to="/provisioning/deliveries" search={{ target, user }} size="sm">
            {t('provisioning.open-stream')}
          </TextLink>,
        ],
        job === null
          ? undefined
          : [
              t('provisioning.job'),
              <TextLink key="job" to="/provisioning/deliveries" search={{ job }} size="sm" className="mono">
                {job}
              </TextLink>,
            ],
        [t('deliveries.created'), <Instant key="created" at={created_at} />],
        next_attempt_at === null ? undefined : [t('deliveries.next'), <Time key="next" at={next_attempt_at} />],
        delivered_at === null ? undefined : [t('status.delivered'), <Instant key="done" at={delivered_at} />],
      ]}
    />
  )
}

function Replay({ delivery }: { delivery: Delivery }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [isOpen, { open, close }] = useDisclosure(false)
  const isRisky = ['delivered', 'retrying'].includes(delivery.status)
  const replay = useChange({
    make: (isConfirmed: boolean) =>
      api.provisioning.provisioningDeliveryReplay({
        path: { id: delivery.document_id },
        body: { confirm_duplicate: isConfirmed },
      }),
    touches: [['provisioned']],
    onDone: close,
  })
  if (!may('provisioning-delivery:replay') || delivery.status === 'cancelled') return null
  return (
    <>
      <Button size="compact-sm" data-key="replay" onClick={open}>
        {isRisky ? t('replay.force') : t('redrive.one')}
      </Button>
      <ReplayDialog
        title={t('redrive.one')}
        label={t('redrive.do')}
        text={t('redrive.text')}
        confirmation={isRisky ? t('provisioning.confirm') : undefined}
        isOpen={isOpen}
        onClose={close}
        replay={replay}
      />
    </>
  )
}
