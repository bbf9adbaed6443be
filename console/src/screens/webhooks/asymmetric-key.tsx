import { Button, Group, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { Facts } from '../../parts/facts.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Instant } from '../../parts/time.tsx'
import { nameOf } from '../../parts/words/webhook-name.ts'

interface Props {
  webhook: Schemas['Webhook']
  onSaved?: () => void
}

/** The public key of a webhook's asymmetric signatures, with what switches them on and off and replaces the key. */
export function AsymmetricKey({ webhook, onSaved }: Props) {
  const { t } = useTranslation('console')
  return (
    <Stack gap="xs" data-testid="asymmetric-key">
      <Title order={2} size="h5">
        {t('asymmetric.title')}
      </Title>
      <Text size="sm" c="dimmed">
        {t('asymmetric.lead')}
      </Text>
      {webhook.public_key === null ? (
        <SwitchOn webhook={webhook} {...(onSaved && { onSaved })} />
      ) : (
        <PresentKey webhook={webhook} publicKey={webhook.public_key} {...(onSaved && { onSaved })} />
      )}
    </Stack>
  )
}

const listTouched = (id: string) => [['webhook', id], ['webhooks']]

/** Switches asymmetric signatures on or off. */
function useSwitch({ document_id: id }: Schemas['Webhook'], isOn: boolean, onDone: () => void) {
  return useChange({
    make: () => api.webhook.webhookUpdate({ path: { id }, body: { asymmetric_signature: isOn } }),
    touches: listTouched(id),
    onDone,
  })
}

function SwitchOn({ webhook, onSaved }: Props) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const change = useSwitch(webhook, true, () => onSaved?.())
  return (
    <>
      <Text size="sm">{t('asymmetric.none')}</Text>
      {change.isError && <ProblemCard error={change.error} />}
      {may('webhook:update') && (
        <Group>
          <Button
            variant="default"
            size="compact-md"
            loading={change.isPending}
            onClick={() => change.mutate(undefined)}
          >
            {t('asymmetric.on')}
          </Button>
        </Group>
      )}
    </>
  )
}

function PresentKey({ webhook, publicKey, onSaved }: Props & { publicKey: string }) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const [asked, setAsked] = useState<'rotate' | 'off' | undefined>()
  const { document_id: id, previous_public_key: previous, previous_public_key_until: until } = webhook
  const name = nameOf(webhook)
  const close = () => setAsked(undefined)
  const onDone = () => {
    close()
    onSaved?.()
  }
  const rotate = useChange({
    make: () => api.webhook.webhookRotateKey({ path: { id } }),
    touches: listTouched(id),
    onDone,
  })
  const off = useSwitch(webhook, false, onDone)
  return (
    <>
      <Facts
        lines={[
          [t('asymmetric.key'), <CopyText key="k" text={publicKey} />],
          [t('asymmetric.set'), <CopyText key="s" text={`${location.origin}/api/v3/webhook/webhook/${id}/jwks`} />],
          previous === null ? undefined : [t('asymmetric.previous'), <CopyText key="p" text={previous} />],
          until === null ? undefined : [t('asymmetric.until'), <Instant key="u" at={until} />],
        ]}
      />
      <Group gap="xs">
        {may('webhook:rotate-key') && (
          <Button variant="default" size="compact-md" onClick={() => setAsked('rotate')}>
            {t('asymmetric.rotate')}
          </Button>
        )}
        {may('webhook:update') && (
          <Button variant="default" size="compact-md" onClick={() => setAsked('off')}>
            {t('asymmetric.off')}
          </Button>
        )}
      </Group>
      <ConfirmDialog
        title={t('asymmetric.rotate-title', { name })}
        label={t('asymmetric.rotate')}
        isOpen={asked === 'rotate'}
        onClose={close}
        onConfirm={() => rotate.mutate(undefined)}
        change={rotate}
      >
        {t('asymmetric.rotate-text')}
      </ConfirmDialog>
      <ConfirmDialog
        title={t('asymmetric.off-title', { name })}
        label={t('asymmetric.off')}
        isOpen={asked === 'off'}
        onClose={close}
        onConfirm={() => off.mutate(undefined)}
        change={off}
      >
        {t('asymmetric.off-text')}
      </ConfirmDialog>
    </>
  )
}
