import { Checkbox, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { ConfirmDialog } from './dialogs.tsx'

interface ReplayDialogProps {
  title: string
  label: string
  text: string
  /** Label of the confirmation that the receiver may get a duplicate; undefined where none is needed. */
  confirmation: string | undefined
  isOpen: boolean
  onClose: () => void
  /** The change; takes whether a duplicate is confirmed. */
  replay: { mutate: (isConfirmed: boolean) => void; isPending: boolean; error: unknown }
}

/** Question before one more POST of a delivery. */
export function ReplayDialog({ text, confirmation, replay, ...dialog }: ReplayDialogProps) {
  const [isConfirmed, setIsConfirmed] = useState(false)
  return (
    <ConfirmDialog
      {...dialog}
      onConfirm={() => replay.mutate(isConfirmed)}
      change={replay}
      isReady={confirmation === undefined || isConfirmed}
    >
      <Stack gap="xs">
        <Text size="sm">{text}</Text>
        {confirmation !== undefined && (
          <Checkbox
            label={confirmation}
            checked={isConfirmed}
            onChange={({ currentTarget }) => setIsConfirmed(currentTarget.checked)}
          />
        )}
      </Stack>
    </ConfirmDialog>
  )
}
