import { Skeleton, Stack, Text, Timeline, Title } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Icon, type IconName } from '../../frame/icons.tsx'
import { useTimeZone } from '../../frame/preferences.ts'
import { formatMs } from '../../parts/chart/format.ts'
import { formatInstant } from '../../parts/format-instant.ts'
import { ProblemCard } from '../../parts/problem.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { faultName } from '../../parts/words/fault-name.ts'
import { formatSpan } from '../../parts/words/span.ts'
import { valueName } from '../../parts/words/value-name.ts'
import type { StoryEntry, StoryLook } from './story.ts'
import type { useStory } from './use-story.ts'

const LOOKS: Record<StoryLook, { icon: IconName; color: string }> = {
  neutral: { icon: 'events', color: 'gray' },
  good: { icon: 'good', color: 'teal' },
  bad: { icon: 'bad', color: 'red' },
  wait: { icon: 'wait', color: 'yellow' },
}

/** About the height of a story of a few deliveries, px. */
const STORY_HEIGHT = 400

/** Story of an event, on one time line from its change to the last attempt. */
export function StoryLine({ story, startMs }: { story: ReturnType<typeof useStory>; startMs: number }) {
  const { t } = useTranslation()
  const { entries, isLoading, error, isWhole, hidden } = story
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        {t('story.title')}
      </Title>
      {/* Its entries come from several reads, in the order of time: they are shown together, so that none moves. */}
      {isLoading && <Skeleton height={STORY_HEIGHT} />}
      <Timeline bulletSize={22} lineWidth={2} active={entries.length}>
        {(isLoading ? [] : entries).map((entry) => (
          <Timeline.Item
            key={entry.key}
            bullet={<Icon name={LOOKS[entry.look].icon} size={12} />}
            color={LOOKS[entry.look].color}
            lineVariant={entry.kind === 'planned' ? 'dashed' : 'solid'}
            title={<EntryTitle entry={entry} />}
          >
            <EntryTime atMs={entry.atMs} startMs={startMs} />
            <EntryText entry={entry} />
          </Timeline.Item>
        ))}
      </Timeline>
      {error && <ProblemCard error={error} />}
      {!isWhole && (
        <Text c="dimmed" size="sm">
          {t('story.more')}
        </Text>
      )}
      {hidden.length > 0 && (
        <Text c="dimmed" size="sm">
          {t('story.hidden', { permissions: hidden.join(', ') })}
        </Text>
      )}
    </Stack>
  )
}

function EntryTitle({ entry }: { entry: StoryEntry }) {
  const { t } = useTranslation()
  const { status } = entry.details
  const text = t(`story.${entry.kind}`, {
    ...entry.details,
    ...(typeof status === 'string' && { status: valueName('status', status, t) }),
  })
  if (!entry.link) return <>{text}</>
  return (
    <TextLink to={entry.link.to} params={{ id: entry.link.id }} inherit>
      {text}
    </TextLink>
  )
}

/** The instant, and how long it was after the event. */
function EntryTime({ atMs, startMs }: { atMs: number; startMs: number }) {
  const { t, i18n } = useTranslation()
  const at = new Date(atMs)
  const timeZone = useTimeZone()
  const span = atMs - startMs
  return (
    <Text size="xs" c="dimmed">
      <time dateTime={at.toISOString()} title={at.toISOString()}>
        {formatInstant(at.toISOString(), i18n.language, timeZone)}
      </time>
      {span > 0 && ` · ${t('story.after', { span: formatSpan(span, i18n.language) })}`}
    </Text>
  )
}

function EntryText({ entry: { kind, details } }: { entry: StoryEntry }) {
  const { t, i18n } = useTranslation()
  if (kind === 'attempt') {
    const { code, fault, ms } = details
    const parts = [
      code === null ? '' : `HTTP ${code}`,
      fault === null ? '' : faultName(String(fault), t),
      formatMs(Number(ms), i18n.language),
    ]
    return <Text size="sm">{parts.filter((part) => part !== '').join(' · ')}</Text>
  }
  const lines = [
    kind === 'change' && details.request !== null ? t('story.request', { request: details.request }) : '',
    kind === 'realtime' ? String(details.channels) : '',
  ].filter((line) => line !== '')
  if (lines.length === 0) return null
  return (
    <Text size="sm" className="mono wrap">
      {lines.join(' ')}
    </Text>
  )
}
