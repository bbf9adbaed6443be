import { Alert, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../frame/icons.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { type Column, RowTable } from '../../parts/row-table.tsx'
import { StatusBadge } from '../../parts/status.tsx'
import { Instant, useNow } from '../../parts/time.tsx'
import { findCertificateAge } from './certificate-age.ts'

type Certificate = Schemas['SamlCertificate']

const STATUS = { valid: 'active', ending: 'stale', ended: 'failed' } as const

/** How often the age of a certificate is looked at again, ms. */
const AGE_MS = 60_000

/** A certificate of several that is nearest to its end, as a status; nothing while none is due. */
export function DueCertificate({ certificates }: { certificates: readonly Certificate[] }) {
  const { t } = useTranslation()
  const nowMs = useNow(AGE_MS)
  const ages = certificates.map(({ not_after }) => findCertificateAge(not_after, nowMs))
  const age = ages.find((item) => item === 'ended') ?? ages.find((item) => item === 'ending')
  if (age === undefined) return null
  return <StatusBadge name={STATUS[age]} text={t(`connections.certificate-${age}`)} />
}

/** The certificates of a SAML provider, with their ends. */
export function Certificates({ certificates }: { certificates: readonly Certificate[] }) {
  const { t } = useTranslation()
  const nowMs = useNow(AGE_MS)
  const rows = certificates.map((item) => ({
    ...item,
    document_id: item.fingerprint,
    age: findCertificateAge(item.not_after, nowMs),
  }))
  const columns: Column<(typeof rows)[number]>[] = [
    {
      label: t('users.state'),
      cell: ({ age }) => <StatusBadge name={STATUS[age]} text={t(`connections.certificate-${age}`)} />,
    },
    { label: t('connections.not-after'), cell: ({ not_after }) => <Instant at={not_after} /> },
    { label: t('connections.not-before'), cell: ({ not_before }) => <Instant at={not_before} /> },
    { label: t('connections.fingerprint'), cell: ({ fingerprint }) => <CopyText text={fingerprint} isShort /> },
  ]
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('connections.certificates')}
      </Title>
      {rows.some(({ age }) => age !== 'valid') && (
        <Alert color="yellow" variant="outline" icon={<Icon name="warn" />} title={t('connections.certificate-due')}>
          <Text size="sm">{t('connections.certificate-due-text')}</Text>
        </Alert>
      )}
      <RowTable caption={t('connections.certificates')} columns={columns} rows={rows} />
    </Stack>
  )
}
