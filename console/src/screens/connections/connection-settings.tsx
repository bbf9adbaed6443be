import { Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { EditForm } from '../../parts/edit-form.tsx'
import { useAccountRoles } from '../../parts/names.tsx'
import { useRowEdit } from '../../parts/row-edit.ts'
import { ConnectionFields } from './connection-fields.tsx'
import { type Connection, type ConnectionFields as Fields, fieldsOf, toUpdateBody } from './draft.ts'

/** The fields by which the provider becomes another one. */
const IDENTITY: readonly (keyof Fields)[] = ['issuer', 'clientId', 'entityId']

/** Changes the provider of a connection, and what its people get. */
export function ConnectionSettings({ connection }: { connection: Connection }) {
  const { t } = useTranslation()
  const labels = useLabels()
  const { account, document_id, kind } = connection
  const roles = new Map(useAccountRoles(account).map((role) => [role.document_id, role.name]))
  const roleName = (id: string) => roles.get(id) ?? id.slice(0, 8)
  const edit = useRowEdit({
    row: connection,
    queryKey: ['connection', document_id],
    fieldsOf,
    send: (changed, ifMatch) =>
      api.identity.connectionUpdate({
        path: { id: account, connection: document_id },
        body: toUpdateBody(changed),
        ifMatch,
      }),
    touches: [['connections', account]],
  })
  return (
    <EditForm
      edit={edit}
      labels={labels}
      show={{
        defaultRole: (id) => id && roleName(id),
        groupRoles: (rows) => rows.map(({ group, role }) => `${group}: ${roleName(role)}`).join(', '),
      }}
      maxWidth={640}
      isWrong={edit.draft.sessionHours === ''}
    >
      <ConnectionFields kind={kind} account={account} draft={edit.draft} onChange={edit.change} isNew={false} />
      {edit.mine.some((name) => IDENTITY.includes(name)) && (
        <Text size="sm" role="status">
          {t('connections.other-provider')}
        </Text>
      )}
    </EditForm>
  )
}

/** Label of each field where two edits meet. */
function useLabels(): Readonly<Record<keyof Fields, string>> {
  const { t } = useTranslation()
  return {
    name: t('connections.name'),
    isJit: t('connections.jit'),
    defaultRole: t('connections.default-role'),
    groupRoles: t('connections.group-roles'),
    sessionHours: t('connections.session-hours'),
    issuer: t('connections.issuer'),
    clientId: t('connections.client-id'),
    clientSecret: t('connections.client-secret'),
    scopes: t('connections.scopes'),
    groupsClaim: t('connections.groups-claim'),
    isEmailTrusted: t('connections.email-trusted'),
    entityId: t('connections.idp-entity-id'),
    ssoUrl: t('connections.sso-url'),
    certificates: t('connections.certificates'),
    emailAttribute: t('connections.email_attribute'),
    nameAttribute: t('connections.name_attribute'),
    groupsAttribute: t('connections.groups_attribute'),
  }
}
