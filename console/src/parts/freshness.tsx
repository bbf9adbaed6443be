import { ActionIcon, Group, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Icon } from '../frame/icons.tsx'
import { useOnline } from '../frame/use-online.ts'
import { describeAge } from './age.ts'
import { Hint } from './hint.tsx'
import { useNow } from './time.tsx'

/** Age from which on rows are called old, ms. */
const OLD_MS = 30_000

/** How new the rows of a list are, and the way to read them again. */
export interface Read {
  /** When the rows were read last, ms since 1970. */
  atMs: number
  /** Whether the last attempt to read them failed, and what is shown is from before. */
  isFailing: boolean
  isReading: boolean
  readAgain: () => void
}

/** How new the answer of one request is. */
export function readOf(query: {
  dataUpdatedAt: number
  isError: boolean
  isFetching: boolean
  refetch: () => Promise<unknown>
}): Read {
  const { dataUpdatedAt: atMs, isError: isFailing, isFetching: isReading, refetch } = query
  return { atMs, isFailing, isReading, readAgain: () => void refetch() }
}

/** Says how old the rows of a list are once they are old, or cannot be read. */
export function Freshness({ atMs, isFailing, isReading, readAgain }: Read) {
  const { t, i18n } = useTranslation()
  const isOnline = useOnline()
  const nowMs = useNow(5_000)
  const isBroken = isFailing || !isOnline
  const isOld = isBroken || nowMs - atMs > OLD_MS
  const describe = () => t('list.updated', { age: describeAge(atMs, Math.max(nowMs, atMs), i18n.language) })
  return (
    <Group gap={4} wrap="nowrap">
      {isOld && atMs > 0 && (
        <Text size="sm" c="dimmed" data-testid="updated">
          {isBroken && <Icon name="warn" size={13} />}{' '}
          {isOnline ? describe() : t('list.offline', { updated: describe() })}
        </Text>
      )}
      <Hint label={t('list.refresh')}>
        <ActionIcon
          variant="subtle"
          color="gray"
          size={24}
          disabled={!isOnline}
          loading={isReading && isOld}
          onClick={readAgain}
          aria-label={t('list.refresh')}
        >
          <Icon name="refresh" size={14} />
        </ActionIcon>
      </Hint>
    </Group>
  )
}
