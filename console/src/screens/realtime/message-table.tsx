import { Alert, Button, Code, Group, Paper, Stack, Text, TextInput, Title } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../frame/icons.tsx'
import { useTimeZone } from '../../frame/preferences.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { SidePanel } from '../../parts/dialog.tsx'
import { download } from '../../parts/download.ts'
import { Facts } from '../../parts/facts.tsx'
import { Form } from '../../parts/form.tsx'
import { NoPermission, ProblemCard } from '../../parts/problem.tsx'
import { Scroll } from '../../parts/scroll/scroll.tsx'
import { Status } from '../../parts/status.tsx'
import { dateFormat } from '../../parts/words/formats.ts'
import { type Subscription, useInspector } from './inspector.ts'
import { filterLines, isChannelName, type Line, toNdjson } from './lines.ts'
import { PublishTest } from './publish-test.tsx'

/** A client in the page: it joins channels with the permissions of the user, and shows all that comes. */
export function Inspector() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const inspector = useInspector()
  if (!may('realtime:auth')) return <NoPermission permission="realtime:auth" />
  return (
    <Stack>
      <JoinForm onJoin={inspector.subscribe} />
      {inspector.fault !== undefined && <ProblemCard error={inspector.fault} />}
      <Group gap="xs" role="status">
        <Text size="sm" c="dimmed">
          {t('realtime.connection')}
        </Text>
        <Code>{inspector.state}</Code>
      </Group>
      {inspector.subscriptions.map((item) => (
        <SubscriptionCard key={item.channel} subscription={item} onLeave={() => void inspector.leave(item.channel)} />
      ))}
      <Lines lines={inspector.lines} onClear={inspector.clear} />
    </Stack>
  )
}

function JoinForm({ onJoin }: { onJoin: (channel: string) => void }) {
  const { t } = useTranslation()
  const { channel: ofUrl = '', ...rest } = useSearch({ from: '/realtime' })
  const navigate = useNavigate()
  const [text, setText] = useState(ofUrl)
  const channel = text.trim()
  const isWrong = channel !== '' && !isChannelName(channel)
  const submit = () => {
    if (!isChannelName(channel)) return
    void navigate({ to: '/realtime', search: { ...rest, channel }, replace: true })
    onJoin(channel)
  }
  return (
    <Form onSubmit={submit}>
      <Group align="flex-end" gap="sm">
        <TextInput
          w={{ base: '100%', sm: 560 }}
          label={t('realtime.channel')}
          description={t('realtime.channel-hint')}
          error={isWrong && t('realtime.channel-wrong')}
          placeholder="private-account-…"
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
          autoComplete="off"
        />
        <Button type="submit" disabled={!isChannelName(channel)}>
          {t('realtime.join')}
        </Button>
        <ApiCall
          operation="realtime.realtimeAuth"
          method="POST"
          path="/api/v3/realtime/realtime/auth"
          body={{ socket_id: '123.456', channel_name: channel || 'private-account-<uuid>' }}
        />
      </Group>
    </Form>
  )
}

function SubscriptionCard({ subscription, onLeave }: { subscription: Subscription; onLeave: () => void }) {
  const { t } = useTranslation()
  const { channel, state, socketId, latencyMs, refusal } = subscription
  return (
    <Paper withBorder p="sm" data-testid="subscription">
      <Group justify="space-between" align="flex-start">
        <Stack gap={4} miw={0}>
          <Text size="sm" className="mono wrap">
            {channel}
          </Text>
          {socketId !== null && (
            <Text size="xs" c="dimmed" className="wrap">
              {t('realtime.asked', { socket: socketId, ms: latencyMs ?? 0 })}
            </Text>
          )}
        </Stack>
        <Group gap="xs">
          <Status name={state} />
          <Button variant="default" size="compact-xs" onClick={onLeave}>
            {t('realtime.leave')}
          </Button>
        </Group>
      </Group>
      {state === 'joined' && <PublishTest channel={channel} />}
      {refusal && (
        <Alert color="red" variant="outline" mt="xs" title={refusal.code}>
          <Facts
            lines={[
              [t('realtime.reason'), refusal.detail],
              refusal.permission === null
                ? undefined
                : [t('realtime.permission'), <Code key="p">{refusal.permission}</Code>],
              refusal.requestId === null ? undefined : [t('problem.request'), refusal.requestId],
            ]}
          />
        </Alert>
      )}
    </Paper>
  )
}

function Lines({ lines, onClear }: { lines: readonly Line[]; onClear: () => void }) {
  const { t } = useTranslation()
  const [text, setText] = useState('')
  const [paused, setPaused] = useState<readonly Line[]>()
  const [open, setOpen] = useState<Line>()
  const all = paused ?? lines
  const shown = filterLines(all, text)
  const held = paused ? lines.filter(({ id }) => id > (paused[0]?.id ?? 0)).length : 0
  const clear = () => {
    onClear()
    setPaused(paused && [])
  }
  return (
    <Stack gap="sm">
      <Group justify="space-between" align="flex-end">
        <Title order={2} size="h4">
          {t('realtime.lines')}
        </Title>
        <Group gap="xs" align="flex-end">
          <TextInput
            label={t('realtime.filter')}
            size="xs"
            value={text}
            onChange={({ currentTarget }) => setText(currentTarget.value)}
          />
          <Button
            variant="default"
            size="xs"
            leftSection={<Icon name={paused ? 'play' : 'pause'} size={14} />}
            onClick={() => setPaused(paused ? undefined : lines)}
          >
            {paused ? t('health.resume') : t('health.pause')}
          </Button>
          <Button variant="default" size="xs" onClick={clear}>
            {t('realtime.clear')}
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={shown.length === 0}
            onClick={() => download(toNdjson(shown), 'realtime.ndjson', 'application/x-ndjson')}
          >
            {t('realtime.download')}
          </Button>
        </Group>
      </Group>
      <Text size="sm" c="dimmed" role="status">
        {held > 0 ? t('realtime.held', { count: held }) : t('realtime.count', { count: shown.length })}
      </Text>
      {shown.length === 0 ? (
        <Paper withBorder p="xl" className="center">
          <Text size="sm">{all.length === 0 ? t('realtime.no-line') : t('list.no-match')}</Text>
        </Paper>
      ) : (
        <LineTable lines={shown} onOpen={setOpen} />
      )}
      <SidePanel title={open?.event ?? ''} isOpen={open !== undefined} onClose={() => setOpen(undefined)}>
        <Code block className="wrap">
          {JSON.stringify(open?.data ?? null, null, 2)}
        </Code>
      </SidePanel>
    </Stack>
  )
}

function LineTable({ lines, onOpen }: { lines: readonly Line[]; onOpen: (line: Line) => void }) {
  const { t, i18n } = useTranslation()
  const timeZone = useTimeZone()
  const time = dateFormat(i18n.language, {
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 },
    ...(timeZone && { timeZone }),
  })
  return (
    <Scroll label={t('realtime.lines')}>
      <table className="table">
        <thead>
          <tr>
            {(['time', 'direction', 'event', 'channel', 'bytes'] as const).map((name) => (
              <th key={name} scope="col" className={name === 'bytes' ? 'nowrap end' : 'nowrap'}>
                {t(`realtime.col.${name}`)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.id}>
              <td className="nowrap">{time.format(new Date(line.at))}</td>
              <td className="nowrap">{t(`realtime.direction.${line.direction}`)}</td>
              <td>
                <Button variant="transparent" size="compact-sm" px={0} onClick={() => onOpen(line)}>
                  {line.event}
                </Button>
              </td>
              <td className="mono nowrap">{line.channel || '–'}</td>
              <td className="end">{line.bytes}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
