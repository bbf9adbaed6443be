import { Button, Group, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { Form } from '../../parts/form.tsx'

/** Publishes a test event on a channel, after a question: every client of the channel gets it. */
export function PublishTest({ channel }: { channel: string }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [text, setText] = useState('')
  const [isAsked, setIsAsked] = useState(false)
  const publish = useChange({
    make: () => api.realtime.realtimePublishTest({ body: { channel_name: channel, text } }),
    touches: [['health', 'realtime']],
    onDone: () => setIsAsked(false),
  })
  if (!may('realtime:publish-test')) return null
  const submit = () => {
    publish.reset()
    setIsAsked(true)
  }
  return (
    <Form onSubmit={submit}>
      <Group gap="xs" align="flex-end" mt="xs">
        <TextInput
          size="xs"
          label={t('realtime.publish-text')}
          maxLength={1_000}
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
          autoComplete="off"
        />
        <Button type="submit" size="xs" variant="default">
          {t('realtime.publish')}
        </Button>
        {publish.isSuccess && (
          <Text size="sm" role="status">
            {t('realtime.publish-done')}
          </Text>
        )}
      </Group>
      <ConfirmDialog
        title={t('realtime.publish')}
        label={t('realtime.publish')}
        isOpen={isAsked}
        onClose={() => setIsAsked(false)}
        onConfirm={() => publish.mutate(undefined)}
        change={publish}
      >
        {t('realtime.publish-effect')}
      </ConfirmDialog>
    </Form>
  )
}
