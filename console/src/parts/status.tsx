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
  return <StatusBadge name={name} text={t(`status.${name}`)} />
}

/** The same with its word given, for lists of many. */
export function StatusBadge({ name, text }: { name: StatusName; text: string }) {
  const { icon, color } = LOOKS[name]
  return (
    <span className="status">
      <span className="status-icon" style={{ color }}>
        <Icon name={icon} size={13} />
      </span>
      {text}
    </span>
  )
}

/** The state of a webhook. */
export function webhookState({ is_actived, disabled_reason }: Schemas['Webhook']): StatusName {
  if (is_actived) return 'active'
  return disabled_reason === null ? 'inactive' : 'disabled'
}
