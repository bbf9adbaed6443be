import { Button, type ButtonProps, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { QueryKey } from '@tanstack/react-query'
import { useChange } from '../frame/use-change.ts'
import { ConfirmDialog } from './dialogs.tsx'

interface AskingButtonProps {
  label: string
  /** Title of the question, with the name of its object where there is more than one. */
  title: string
  /** Text of what is lost. */
  text: string
  make: () => Promise<unknown>
  /** The answers that are not true any more. */
  touches: readonly QueryKey[]
  size?: ButtonProps['size']
  variant?: 'default' | 'subtle'
}

/** A button of an action that ends something: it says first what is lost. */
export function AskingButton(props: AskingButtonProps) {
  const { label, title, text, make, touches, size, variant = 'default' } = props
  const [isOpen, { open, close }] = useDisclosure(false)
  const change = useChange({ make: (_: undefined) => make(), touches, onDone: close })
  const ask = () => {
    change.reset()
    open()
  }
  return (
    <>
      <Button {...(size && { size })} variant={variant} onClick={ask}>
        {label}
      </Button>
      <ConfirmDialog
        title={title}
        label={label}
        isOpen={isOpen}
        onClose={close}
        onConfirm={() => change.mutate(undefined)}
        change={change}
      >
        <Text size="sm">{text}</Text>
      </ConfirmDialog>
    </>
  )
}
