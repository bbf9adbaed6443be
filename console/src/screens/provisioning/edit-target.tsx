import { Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { PasswordInput, Textarea, TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import type { Target } from './targets.ts'

/** The members of a target that differ from the fields of a form. Pure. */
function toBody(
  target: Target,
  draft: { url: string; name: string; description: string; token: string },
): Schemas['UpdateProvisioningTarget'] {
  const { url, name, description } = { ...target, name: target.name ?? '', description: target.description ?? '' }
  return {
    ...(draft.url.trim() !== url && { url: draft.url.trim() }),
    ...(draft.name.trim() !== name && { name: draft.name.trim() || null }),
    ...(draft.description.trim() !== description && { description: draft.description.trim() || null }),
    ...(draft.token.trim() && { token: draft.token.trim() }),
  }
}

/** Changes the URL, the words and the token of a target. Its protocol is what it was made with. */
export function EditTarget({ target, onClose }: { target: Target; onClose: () => void }) {
  const { t } = useTranslation()
  const { url, name, description, protocol, document_id: id } = target
  const [draft, setDraft] = useState({ url, name: name ?? '', description: description ?? '', token: '' })
  const change = (part: Partial<typeof draft>) => setDraft({ ...draft, ...part })
  const body = toBody(target, draft)
  const save = useChange({
    make: () => api.provisioning.provisioningTargetUpdate({ path: { id }, body }),
    touches: [['target', id], ['targets']],
    onDone: onClose,
  })
  return (
    <Dialog title={t('provisioning.edit')} isOpen onClose={onClose}>
      <ChangeForm change={save} label={t('settings.save')} isDisabled={Object.keys(body).length === 0}>
        <TextInput
          field="url"
          label={t('provisioning.url')}
          description={protocol === 'scim' ? t('provisioning.url-scim') : t('create.url-hint')}
          type="url"
          required
          maxLength={2048}
          value={draft.url}
          onChange={({ currentTarget: { value } }) => change({ url: value })}
        />
        {body.url !== undefined && <Text size="sm">{t('provisioning.url-change')}</Text>}
        {protocol === 'scim' && (
          <PasswordInput
            field="token"
            label={t('provisioning.token')}
            description={t('provisioning.token-kept')}
            autoComplete="off"
            value={draft.token}
            onChange={({ currentTarget: { value } }) => change({ token: value })}
          />
        )}
        <TextInput
          field="name"
          label={t('webhooks.name')}
          maxLength={100}
          value={draft.name}
          onChange={({ currentTarget: { value } }) => change({ name: value })}
        />
        <Textarea
          field="description"
          label={t('create.description')}
          maxLength={500}
          autosize
          value={draft.description}
          onChange={({ currentTarget: { value } }) => change({ description: value })}
        />
      </ChangeForm>
    </Dialog>
  )
}
