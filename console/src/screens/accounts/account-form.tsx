import { Button, Group, Stack, TextInput } from '@mantine/core'
import { type SyntheticEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useChange } from '../../frame/use-change.ts'
import { ProblemCard } from '../../parts/problem.tsx'

/** Asks for the name of an account. */
export function AccountForm<Answer>({
  label,
  name = '',
  send,
  onDone,
}: {
  label: string
  name?: string
  send: (name: string) => Promise<Answer>
  onDone: (answer: Answer) => void
}) {
  const { t } = useTranslation()
  const [text, setText] = useState(name)
  const save = useChange({ make: send, touches: [['accounts'], ['account']], onDone })
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    save.mutate(text.trim())
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label={t('accounts.name')}
          required
          data-autofocus
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
        {save.isError && <ProblemCard error={save.error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={save.isPending} disabled={text.trim() === '' || text.trim() === name}>
            {label}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
