import { Autocomplete, Button, Group, Stack, Text, TextInput, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { Facts } from '../../parts/facts.tsx'
import { Form } from '../../parts/form.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { describeHandshake } from './handshake-token.ts'

/** Starts a handshake for the user who is signed in here, and shows what the app would get. */
export function TestHandshake({ targets }: { targets: Schemas['HandshakeTargets']['targets'] }) {
  const { t } = useTranslation()
  const [target, setTarget] = useState(targets[0] ? `${targets[0].origin}/` : '')
  const [next, setNext] = useState('')
  const start = useChange({
    make: () => {
      const body = { target_url: target.trim(), ...(next.trim() && { next: next.trim() }) }
      return api.auth.ssoHandshake({ body })
    },
    touches: [],
  })
  const made = start.data?.data
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('handshake.test')}
      </Title>
      <Text size="sm">{t('handshake.test-text')}</Text>
      <Form onSubmit={() => start.mutate(undefined)}>
        <Group align="flex-end" gap="sm">
          <Autocomplete
            label={t('handshake.target-url')}
            required
            w={320}
            maw="100%"
            data={targets.map(({ origin }) => `${origin}/`)}
            value={target}
            onChange={setTarget}
          />
          <TextInput
            label={t('handshake.next')}
            placeholder="/orders"
            value={next}
            onChange={({ currentTarget }) => setNext(currentTarget.value)}
          />
          <Button type="submit" variant="default" loading={start.isPending}>
            {t('handshake.start')}
          </Button>
        </Group>
      </Form>
      {start.isError && <ProblemCard error={start.error} />}
      {made && (
        <Stack gap="xs" align="flex-start" role="status">
          <Text size="sm" fw={600}>
            {made.cross_domain ? t('handshake.made') : t('handshake.not-needed')}
          </Text>
          <Facts lines={describeHandshake(made.redirect_url)} />
          <Button component="a" href={made.redirect_url} target="_blank" rel="noopener" size="compact-md">
            {t('handshake.open')}
          </Button>
        </Stack>
      )}
    </Stack>
  )
}
