import { Code, Stack, Text, Timeline, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../frame/icons.tsx'
import { formatMs } from '../../parts/chart/format.ts'
import { Instant, Time } from '../../parts/time.tsx'
import { isCut } from './request-text.ts'

type Attempt = Schemas['Attempt']

interface AttemptsProps {
  attempts: readonly Attempt[]
  /** Instant of the next attempt, where the screen shows it among those that were made. */
  plannedAt?: string | null
  /** Level of the heading. */
  order: 2 | 3
}

/** The attempts of a delivery that were made, and the one that is planned. */
export function Attempts({ attempts, plannedAt = null, order }: AttemptsProps) {
  const { t } = useTranslation()
  return (
    <>
      <Title order={order} size="h5">
        {t('delivery.attempts', { count: attempts.length })}
      </Title>
      {attempts.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t('delivery.no-attempt')}
        </Text>
      ) : (
        <Timeline bulletSize={22} lineWidth={2} active={attempts.length}>
          {attempts.map((attempt) => (
            <Timeline.Item
              key={attempt.attempt}
              bullet={<Icon name={attempt.error_class === null ? 'good' : 'bad'} size={12} />}
              color={attempt.error_class === null ? 'teal' : 'red'}
              title={t('delivery.attempt', { number: attempt.attempt, trigger: t(`trigger.${attempt.trigger}`) })}
            >
              <AttemptDetail attempt={attempt} />
            </Timeline.Item>
          ))}
          {plannedAt !== null && (
            <Timeline.Item title={t('delivery.planned')} lineVariant="dashed">
              <Text size="sm">
                <Instant at={plannedAt} /> (<Time at={plannedAt} />)
              </Text>
            </Timeline.Item>
          )}
        </Timeline>
      )}
    </>
  )
}

/** Outcome of one attempt, with its times and the answer. */
function AttemptDetail({ attempt }: { attempt: Attempt }) {
  const { t, i18n } = useTranslation()
  const { status_code: code, error_class: fault, duration_ms: ms, timings, response_excerpt: text } = attempt
  const parts = timings && [
    ['DNS', timings.dns_ms],
    [t('delivery.connect'), timings.connect_ms],
    ['TLS', timings.tls_ms],
    [t('delivery.first-byte'), timings.first_byte_ms],
  ]
  const shown = (parts ?? []).flatMap(([name, value]) =>
    value === null ? [] : [`${name} ${Math.round(Number(value))} ms`],
  )
  return (
    <Stack gap={4}>
      <Text size="sm">
        <Instant at={attempt.started_at} /> · {code === null ? '' : `HTTP ${code} · `}
        {fault === null ? '' : `${t(`fault.${fault}`)} · `}
        {code === null && fault === null ? `${t('pull.acknowledged')} · ` : ''}
        {formatMs(ms, i18n.language)}
      </Text>
      {shown.length > 0 && (
        <Text size="xs" c="dimmed">
          {shown.join(' · ')}
        </Text>
      )}
      {text && (
        <details>
          <summary>{t('delivery.answer')}</summary>
          {attempt.response_headers && (
            <Code block className="wrap">
              {Object.entries(attempt.response_headers)
                .map(([name, value]) => `${name}: ${value}`)
                .join('\n')}
            </Code>
          )}
          <Code block className="wrap" mt={4}>
            {text}
          </Code>
          {isCut(text) && (
            <Text size="xs" c="dimmed">
              {t('delivery.answer-cut')}
            </Text>
          )}
        </details>
      )}
    </Stack>
  )
}
