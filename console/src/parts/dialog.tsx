import { CloseButton, Drawer, Group, getDefaultZIndex, Modal, Title } from '@mantine/core'
import { type ReactNode, useId } from 'react'
import { useTranslation } from 'react-i18next'
import { DialogContext, leaveEntries } from '../frame/unsaved.ts'

interface DialogProps {
  title: string
  isOpen: boolean
  /** Left out for a dialog that closes by a button in it alone. */
  onClose?: (() => void) | undefined
  /** Asks about the page or another dialog: it lies above those that the page has built later. */
  isAbove?: boolean
  children: ReactNode
}

const ABOVE = { zIndex: getDefaultZIndex('modal') + 1 }

/** A dialog in the middle of the screen. Its heading is no `header`, which would be a second banner of the page. */
export function Dialog({ title, isOpen, onClose, isAbove = false, children }: DialogProps) {
  const isClosable = onClose !== undefined
  const id = useId()
  const leave = isClosable ? () => void leaveEntries(onClose, id) : undefined
  return (
    <Modal.Root
      opened={isOpen}
      onClose={leave ?? (() => {})}
      closeOnClickOutside={isClosable}
      closeOnEscape={isClosable}
      centered
      {...(isAbove && ABOVE)}
      transitionProps={{ duration: 0 }}
    >
      <Modal.Overlay />
      <Modal.Content aria-label={title}>
        <Modal.Body p="md">
          <Heading title={title} onClose={leave} />
          <DialogContext value={id}>{children}</DialogContext>
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  )
}

/** A dialog at the side of the screen, beside what it was opened from. */
export function SidePanel({
  title,
  isOpen,
  onClose,
  children,
}: Omit<DialogProps, 'isAbove'> & { onClose: () => void }) {
  const id = useId()
  const leave = () => void leaveEntries(onClose, id)
  return (
    <Drawer.Root opened={isOpen} onClose={leave} position="right" size="lg" transitionProps={{ duration: 0 }}>
      <Drawer.Overlay />
      <Drawer.Content aria-label={title}>
        <Drawer.Body p="md">
          <Heading title={title} onClose={leave} />
          <DialogContext value={id}>{children}</DialogContext>
        </Drawer.Body>
      </Drawer.Content>
    </Drawer.Root>
  )
}

function Heading({ title, onClose }: { title: string; onClose: (() => void) | undefined }) {
  const { t } = useTranslation()
  return (
    <Group justify="space-between" mb="sm" wrap="nowrap">
      <Title order={2} size="h4" miw={0} className="wrap">
        {title}
      </Title>
      {onClose && <CloseButton onClick={onClose} aria-label={t('dialog.close')} />}
    </Group>
  )
}
