import { Switch } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { NativeSelect, NumberInput, TextInput } from '../../parts/fields.tsx'
import type { ConnectionFields as Fields, Kind } from './draft.ts'
import { GroupRoles, useRoleOptions } from './group-roles.tsx'
import { OidcFields } from './oidc-fields.tsx'
import { SamlFields } from './saml-fields.tsx'

/** The fields of one part of the form. */
export interface FieldsProps {
  account: string
  draft: Fields
  onChange: (part: Partial<Fields>) => void
  /** Whether the connection is being made, so that its secret is required. */
  isNew: boolean
}

/** The fields of a connection: its name, its provider, and what its people get. */
export function ConnectionFields({ kind, ...props }: FieldsProps & { kind: Kind }) {
  const { t } = useTranslation()
  const { account, draft, onChange: change } = props
  const roles = useRoleOptions(account, [draft.defaultRole])
  return (
    <>
      <TextInput
        field="name"
        label={t('connections.name')}
        description={t('connections.name-hint')}
        required
        maxLength={100}
        value={draft.name}
        onChange={({ currentTarget: { value } }) => change({ name: value })}
      />
      {kind === 'oidc' ? <OidcFields {...props} /> : <SamlFields {...props} />}
      <Switch
        label={t('connections.jit')}
        description={t('connections.jit-hint')}
        checked={draft.isJit}
        onChange={({ currentTarget: { checked } }) => change({ isJit: checked })}
      />
      <GroupRoles account={account} rows={draft.groupRoles} onChange={(groupRoles) => change({ groupRoles })} />
      <NativeSelect
        field="default_role"
        label={t('connections.default-role')}
        description={t('connections.default-role-hint')}
        data={[{ value: '', label: t('connections.no-role') }, ...roles]}
        value={draft.defaultRole}
        onChange={({ currentTarget: { value } }) => change({ defaultRole: value })}
      />
      <NumberInput
        field="session_hours"
        label={t('connections.session-hours')}
        description={t('connections.session-hours-hint')}
        required
        min={1}
        max={2160}
        allowDecimal={false}
        allowNegative={false}
        value={draft.sessionHours}
        onChange={(value) => change({ sessionHours: value === '' ? '' : Number(value) })}
      />
    </>
  )
}
