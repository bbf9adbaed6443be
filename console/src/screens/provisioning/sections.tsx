import { Group } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { TextLink } from '../../parts/text-link.tsx'

/** The screens of provisioning, each with its permission. */
const SECTIONS = [
  ['/provisioning', 'provisioning.targets', {}, 'provisioning-target:find-all'],
  ['/provisioning/deliveries', 'deliveries.title', {}, 'provisioning-delivery:find-all'],
  ['/provisioning/deliveries', 'provisioning.dead', { status: 'dead_letter' }, 'provisioning-delivery:find-all'],
  ['/provisioning/jobs', 'provisioning.jobs', {}, 'provisioning-job:find-all'],
] as const

/** Links between the screens of provisioning. */
export function Sections({ current }: { current: `provisioning.${'targets' | 'dead' | 'jobs'}` | 'deliveries.title' }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  return (
    <Group component="nav" gap="lg" aria-label={t('provisioning.title')}>
      {SECTIONS.filter(([, , , permission]) => may(permission)).map(([to, label, search]) => (
        <TextLink
          key={label}
          to={to}
          search={search}
          size="sm"
          fw={label === current ? 700 : 400}
          {...(label === current && { 'aria-current': 'page' as const })}
        >
          {t(label)}
        </TextLink>
      ))}
    </Group>
  )
}
