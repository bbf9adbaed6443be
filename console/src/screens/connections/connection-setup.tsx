import { Alert, Stack, Text, Title } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../frame/icons.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Certificates } from './certificates.tsx'
import { ConnectionActivity } from './connection-activity.tsx'
import type { Connection } from './draft.ts'

/** A path of the service as an address. The service answers changes of this page at the origin of `BASE_URL` alone. */
const addressOf = (path: string) => new URL(path, location.origin).href

/** The address that starts a sign-in by a connection, and shows the account pages after it. */
function startOf({ document_id }: Connection): string {
  const url = new URL(`/api/v3/auth/login/oauth/${document_id}`, location.origin)
  url.searchParams.set('redirect_url', `${location.origin}/auth/`)
  return url.href
}

/** Setup of a connection: what it is, what its provider needs, and how a sign-in is tried. */
export function ConnectionSetup({ connection }: { connection: Connection }) {
  const { t } = useTranslation()
  const { oidc, saml } = connection
  const yesNo = (value: boolean) => (value ? t('form.yes') : t('form.no'))
  return (
    <Stack gap="lg">
      <Facts
        lines={[
          [t('connections.id'), <CopyText key="id" text={connection.document_id} />],
          [t('connections.kind'), t(`connections.kind.${connection.kind}`)],
          oidc ? [t('connections.issuer'), <CopyText key="issuer" text={oidc.issuer} />] : undefined,
          saml ? [t('connections.idp-entity-id'), <CopyText key="entity" text={saml.idp_entity_id} />] : undefined,
          [t('connections.enforced'), yesNo(connection.is_enforced)],
          [t('connections.jit'), yesNo(connection.is_jit)],
          [t('connections.session-hours'), connection.session_hours],
        ]}
      />
      <Stack gap="xs">
        <Title order={2} size="h4">
          {t('connections.for-provider')}
        </Title>
        <Text size="sm">{t(`connections.for-provider.${connection.kind}`)}</Text>
        <Facts
          lines={[
            oidc
              ? [t('connections.redirect-uri'), <CopyText key="uri" text={addressOf(oidc.redirect_path)} />]
              : undefined,
            saml ? [t('connections.acs-url'), <CopyText key="acs" text={addressOf(saml.acs_path)} />] : undefined,
            saml ? [t('connections.sp'), <CopyText key="sp" text={addressOf(saml.metadata_path)} />] : undefined,
          ]}
        />
      </Stack>
      <ConnectionActivity connection={connection} />
      {saml && <Certificates certificates={saml.certificates} />}
      <Stack gap="xs" align="flex-start">
        <Title order={2} size="h4">
          {t('connections.test')}
        </Title>
        <Text size="sm">{t('connections.test-text')}</Text>
        <CopyText text={startOf(connection)} />
        {!connection.is_enabled && (
          <Alert color="yellow" variant="outline" icon={<Icon name="warn" />}>
            {t('connections.test-disabled')}
          </Alert>
        )}
      </Stack>
    </Stack>
  )
}
