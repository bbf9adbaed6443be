import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { Textarea, TextInput } from '../../parts/fields.tsx'
import type { FieldsProps } from './connection-fields.tsx'
import { ReadMetadata } from './read-metadata.tsx'

/** The fields of a SAML provider, which its metadata can fill. */
export function SamlFields({ account, draft, onChange: change }: FieldsProps) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const attributes = [
    ['emailAttribute', 'email_attribute', 'email'],
    ['nameAttribute', 'name_attribute', 'displayName'],
    ['groupsAttribute', 'groups_attribute', 'groups'],
  ] as const
  return (
    <>
      {may('connection:read-metadata') && (
        <ReadMetadata
          account={account}
          onRead={({ idp_entity_id, sso_url, certificates }) =>
            change({
              entityId: idp_entity_id,
              ssoUrl: sso_url,
              certificates: certificates.map(({ pem }) => pem.trim()).join('\n'),
            })
          }
        />
      )}
      <TextInput
        field="saml.idp_entity_id"
        label={t('connections.idp-entity-id')}
        required
        maxLength={1024}
        spellCheck={false}
        value={draft.entityId}
        onChange={({ currentTarget: { value } }) => change({ entityId: value })}
      />
      <TextInput
        field="saml.sso_url"
        label={t('connections.sso-url')}
        description={t('connections.sso-url-hint')}
        required
        maxLength={2048}
        spellCheck={false}
        value={draft.ssoUrl}
        onChange={({ currentTarget: { value } }) => change({ ssoUrl: value })}
      />
      <Textarea
        field="saml.certificates"
        label={t('connections.certificates')}
        description={t('connections.certificates-hint')}
        required
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        classNames={{ input: 'mono' }}
        value={draft.certificates}
        onChange={({ currentTarget: { value } }) => change({ certificates: value })}
      />
      {attributes.map(([name, field, placeholder]) => (
        <TextInput
          key={name}
          field={`saml.${field}`}
          label={t(`connections.${field}`)}
          description={t('connections.attribute-hint')}
          placeholder={placeholder}
          maxLength={256}
          spellCheck={false}
          value={draft[name]}
          onChange={({ currentTarget: { value } }) => change({ [name]: value })}
        />
      ))}
    </>
  )
}
