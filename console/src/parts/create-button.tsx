import { Button } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { Dialog } from './dialog.tsx'

/** A button that opens a form in a dialog; both have the same name. `children` get a function that closes it. */
export function CreateButton({ label, children }: { label: string; children: (close: () => void) => ReactNode }) {
  const [isOpen, setIsOpen] = useState(false)
  const close = () => setIsOpen(false)
  return (
    <>
      <Button size="compact-md" onClick={() => setIsOpen(true)}>
        {label}
      </Button>
      <Dialog title={label} isOpen={isOpen} onClose={close}>
        {children(close)}
      </Dialog>
    </>
  )
}
