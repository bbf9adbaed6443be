import { SegmentedControl } from '@mantine/core'
import { useTranslation } from 'react-i18next'

/** Key that verifies a signature. */
export type SignatureKind = 'secret' | 'key'

/** Chooses what verifies a signature, for a webhook that has both. */
export function SignatureKindChoice({
  value,
  onChange,
}: {
  value: SignatureKind
  onChange: (kind: SignatureKind) => void
}) {
  const { t } = useTranslation('console')
  return (
    <div>
      <SegmentedControl
        size="xs"
        transitionDuration={0}
        aria-label={t('v1a.kind')}
        value={value}
        onChange={(kind) => onChange(kind === 'key' ? 'key' : 'secret')}
        data={[
          { value: 'secret', label: t('signature.secret') },
          { value: 'key', label: t('asymmetric.key') },
        ]}
      />
    </div>
  )
}
