import { Switch } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { PasswordInput, TagsInput, TextInput } from '../../parts/fields.tsx'
import type { FieldsProps } from './connection-fields.tsx'

/** The fields of an OpenID provider. */
export function OidcFields({ draft, onChange: change, isNew }: FieldsProps) {
  const { t } = useTranslation()
  return (
    <>
      <TextInput
        field="oidc.issuer"
        label={t('connections.issuer')}
        description={t('connections.issuer-hint')}
        placeholder="https://login.example.com"
        required
        maxLength={1024}
        spellCheck={false}
        value={draft.issuer}
        onChange={({ currentTarget: { value } }) => change({ issuer: value })}
      />
      <TextInput
        field="oidc.client_id"
        label={t('connections.client-id')}
        required
        maxLength={512}
        spellCheck={false}
        autoComplete="off"
        value={draft.clientId}
        onChange={({ currentTarget: { value } }) => change({ clientId: value })}
      />
      <PasswordInput
        field="oidc.client_secret"
        label={t('connections.client-secret')}
        description={isNew ? t('connections.client-secret-hint') : t('connections.client-secret-kept')}
        required={isNew}
        maxLength={2048}
        autoComplete="off"
        value={draft.clientSecret}
        onChange={({ currentTarget: { value } }) => change({ clientSecret: value })}
      />
      <TagsInput
        field="oidc.scopes"
        label={t('connections.scopes')}
        description={t('connections.scopes-hint')}
        value={[...draft.scopes]}
        onChange={(scopes) => change({ scopes })}
      />
      <TextInput
        field="oidc.groups_claim"
        label={t('connections.groups-claim')}
        description={t('connections.groups-claim-hint')}
        placeholder="groups"
        maxLength={256}
        spellCheck={false}
        value={draft.groupsClaim}
        onChange={({ currentTarget: { value } }) => change({ groupsClaim: value })}
      />
      <Switch
        label={t('connections.email-trusted')}
        description={t('connections.email-trusted-hint')}
        checked={draft.isEmailTrusted}
        onChange={({ currentTarget: { checked } }) => change({ isEmailTrusted: checked })}
      />
    </>
  )
}
