import { ActionIcon, Menu } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../../frame/icons.tsx'
import { useAccess } from '../../../frame/session.tsx'
import { Dialog } from '../../../parts/dialog.tsx'
import { ProblemCard } from '../../../parts/problem.tsx'
import { nameOf } from '../../../parts/words/webhook-name.ts'
import { type Question, Removal, RotateSecret, useActivation, useTest } from '../webhook-actions.tsx'

/** Actions on a webhook of the list. */
export function RowMenu({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const navigate = useNavigate()
  const [asked, setAsked] = useState<Question | undefined>()
  const send = useTest(webhook)
  const activation = useActivation(webhook)
  const failed = [send, activation].find(({ isError }) => isError)
  const { document_id: id, is_actived } = webhook
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={t('webhooks.more-of', { name: nameOf(webhook) })}>
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => void navigate({ to: '/webhooks/$id', params: { id } })}>
            {t('webhooks.open')}
          </Menu.Item>
          {may('webhook:test') && <Menu.Item onClick={() => send.mutate(undefined)}>{t('webhooks.test')}</Menu.Item>}
          {may('webhook:active') && (
            <Menu.Item onClick={() => activation.mutate(undefined)}>
              {is_actived ? t('webhooks.deactivate') : t('webhooks.activate')}
            </Menu.Item>
          )}
          {may('webhook:rotate-secret') && (
            <Menu.Item onClick={() => setAsked('rotate')}>{t('webhooks.rotate')}</Menu.Item>
          )}
          <Menu.Item onClick={() => void navigator.clipboard.writeText(id)}>{t('webhooks.copy-id')}</Menu.Item>
          {may('webhook:delete') && <Menu.Item onClick={() => setAsked('delete')}>{t('webhooks.delete')}</Menu.Item>}
        </Menu.Dropdown>
      </Menu>
      <RotateSecret webhook={webhook} isAsked={asked === 'rotate'} onClose={() => setAsked(undefined)} />
      <Removal webhook={webhook} asked={asked} onClose={() => setAsked(undefined)} />
      <Dialog title={nameOf(webhook)} isOpen={failed !== undefined} onClose={() => failed?.reset()}>
        <ProblemCard error={failed?.error} />
      </Dialog>
    </>
  )
}
