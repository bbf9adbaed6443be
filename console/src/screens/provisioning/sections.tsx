import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { LinkStrip } from '../../parts/scroll/link-strip.tsx'

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
    <LinkStrip className="screens scroll" label={t('provisioning.title')} current={current}>
      {SECTIONS.filter(([, , , permission]) => may(permission)).map(([to, label, search]) => (
        <Link
          key={label}
          to={to}
          search={search}
          activeOptions={{ exact: true, includeSearch: true }}
          {...(label === current && { 'aria-current': 'page' as const })}
        >
          {t(label)}
        </Link>
      ))}
    </LinkStrip>
  )
}
