import { Badge } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { Icon, type IconName } from '../frame/icons.tsx'

type Look = { icon: IconName; color: string }

const GOOD: Look = { icon: 'good', color: 'var(--status-good)' }
const BAD: Look = { icon: 'bad', color: 'var(--status-bad)' }
const WAIT: Look = { icon: 'wait', color: 'var(--status-wait)' }
const QUIET: Look = { icon: 'close', color: 'var(--mantine-color-dimmed)' }

const LOOKS = {
  success: GOOD,
  pending: WAIT,
  retrying: WAIT,
  exhausted: BAD,
  failed: BAD,
  cancelled: QUIET,
  active: GOOD,
  invited: WAIT,
  inactive: QUIET,
  disabled: BAD,
  operational: GOOD,
  degraded: WAIT,
  down: BAD,
  failure: BAD,
  open: WAIT,
  accepted: GOOD,
  revoked: QUIET,
  expired: QUIET,
  delivered: GOOD,
  dead_letter: BAD,
  published: GOOD,
  rejected: BAD,
  running: WAIT,
  paused: QUIET,
  done: GOOD,
  stale: WAIT,
  'in-sync': GOOD,
  'out-of-sync': WAIT,
  delivers: GOOD,
  skips: QUIET,
  asking: WAIT,
  joined: GOOD,
  refused: BAD,
} as const satisfies Record<string, Look>

export type StatusName = keyof typeof LOOKS

/** A status: its icon, its word, and a colour that only underlines them. */
export function Status({ name }: { name: StatusName }) {
  const { t } = useTranslation()
  const { icon, color } = LOOKS[name]
  return (
    <Badge
      variant="default"
      tt="none"
      fw={600}
      miw="max-content"
      leftSection={
        <span style={{ color, display: 'flex' }}>
          <Icon name={icon} size={13} />
        </span>
      }
    >
      {t(`status.${name}`)}
    </Badge>
  )
}

/** The state of a webhook. */
export function webhookState({ is_actived, disabled_reason }: Schemas['Webhook']): StatusName {
  if (is_actived) return 'active'
  return disabled_reason === null ? 'inactive' : 'disabled'
}
