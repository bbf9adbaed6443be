import { Anchor, Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { AskingButton } from '../../parts/asking-button.tsx'
import { TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Instant } from '../../parts/time.tsx'
import { OwnPicture } from './own-picture.tsx'

const OWN = ['own-user']

/** Profile that the user changes: picture, name and address here, the deletion on the page of the service. */
export function OwnProfile() {
  const { t } = useTranslation()
  const own = useQuery({ queryKey: OWN, queryFn: ({ signal }) => api.auth.userFindOwn({ signal }) })
  return (
    <Loaded query={own} height={200}>
      {({ data }) => (
        <Stack>
          <OwnPicture url={data.avatar_url} touches={OWN} />
          <NameForm key={data.updated_at} name={data.name} />
          {data.email_change ? <Pending change={data.email_change} /> : <EmailForm />}
          <Anchor href="/auth/profile" size="sm">
            {t('profile.more')}
          </Anchor>
        </Stack>
      )}
    </Loaded>
  )
}

function NameForm({ name }: { name: string | null }) {
  const { t } = useTranslation()
  const before = name ?? ''
  const [draft, setDraft] = useState(before)
  const save = useChange({
    make: () => api.auth.userUpdateOwn({ body: { name: draft.trim() || null } }),
    touches: [OWN, ['session']],
  })
  return (
    <ChangeForm change={save} label={t('settings.save')} isDisabled={draft.trim() === before} buttonAt="start">
      <TextInput
        field="name"
        label={t('users.name')}
        autoComplete="name"
        value={draft}
        onChange={({ currentTarget: { value } }) => setDraft(value)}
      />
    </ChangeForm>
  )
}

function EmailForm() {
  const { t } = useTranslation()
  const [email, setEmail] = useState('')
  const ask = useChange({
    make: () => api.auth.userRequestEmailChange({ body: { email: email.trim() } }),
    touches: [OWN],
  })
  return (
    <ChangeForm change={ask} label={t('profile.ask')} isDisabled={email.trim() === ''} buttonAt="start">
      <TextInput
        field="email"
        label={t('profile.new-email')}
        description={t('profile.new-email-hint')}
        type="email"
        value={email}
        onChange={({ currentTarget: { value } }) => setEmail(value)}
      />
    </ChangeForm>
  )
}

function Pending({ change }: { change: Schemas['EmailChange'] }) {
  const { t } = useTranslation()
  const waits = change.is_new_confirmed ? 'present' : change.is_present_confirmed ? 'new' : 'both'
  return (
    <Stack gap="xs">
      <Text size="sm">{t('profile.pending', { email: change.email })}</Text>
      <Text size="sm" c="dimmed">
        {t(`profile.waits.${waits}`)} <Instant at={change.expires_at} />
      </Text>
      <Group>
        <AskingButton
          label={t('profile.withdraw')}
          title={t('profile.withdraw')}
          text={t('profile.withdraw-text')}
          make={() => api.auth.userCancelEmailChange()}
          touches={[OWN]}
        />
      </Group>
    </Stack>
  )
}
