import { Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { EditForm } from '../../parts/edit-form.tsx'
import { PasswordInput, Textarea, TextInput } from '../../parts/fields.tsx'
import { useRowEdit } from '../../parts/row-edit.ts'
import { URL_HINT } from '../../parts/words/url-hint.ts'
import type { Target } from './targets.ts'

const fieldsOf = ({ url, name, description }: Target) => ({
  url,
  name: name ?? '',
  description: description ?? '',
  token: '',
})

/** The change of these fields as the API takes it. Pure. */
function toBody(changed: Partial<ReturnType<typeof fieldsOf>>): Schemas['UpdateProvisioningTarget'] {
  const { url, name, description, token } = changed
  return {
    ...(url !== undefined && { url: url.trim() }),
    ...(name !== undefined && { name: name.trim() || null }),
    ...(description !== undefined && { description: description.trim() || null }),
    ...(token?.trim() && { token: token.trim() }),
  }
}

/** Changes the URL, the words and the token of a target. Its protocol is what it was made with. */
export function EditTarget({ target, onClose }: { target: Target; onClose: () => void }) {
  const { t } = useTranslation()
  const { protocol, document_id: id } = target
  const edit = useRowEdit({
    row: target,
    queryKey: ['target', id],
    fieldsOf,
    send: (changed, ifMatch) =>
      api.provisioning.provisioningTargetUpdate({ path: { id }, body: toBody(changed), ifMatch }),
    touches: [['targets']],
    onDone: onClose,
  })
  const { draft, change } = edit
  return (
    <Dialog title={t('provisioning.edit')} isOpen onClose={onClose}>
      <EditForm
        edit={edit}
        labels={{
          url: t('provisioning.url'),
          name: t('webhooks.name'),
          description: t('create.description'),
          token: t('provisioning.token'),
        }}
        buttonAt="end"
      >
        <TextInput
          field="url"
          label={t('provisioning.url')}
          description={protocol === 'scim' ? t('provisioning.url-scim') : t(URL_HINT)}
          type="url"
          required
          maxLength={2048}
          value={draft.url}
          onChange={({ currentTarget: { value } }) => change({ url: value })}
        />
        {edit.mine.includes('url') && <Text size="sm">{t('provisioning.url-change')}</Text>}
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
      </EditForm>
    </Dialog>
  )
}
