import { type ReactNode, type Ref, useRef, useState } from 'react'

interface AnchorProps {
  ref?: Ref<HTMLSpanElement>
}

/** The place at which a menu or a panel is attached: that of the control around it, which stands there before either is loaded. */
export const Anchor = ({ ref }: AnchorProps) => <span ref={ref} className="anchor" />

/** Attributes of the control of a panel. */
interface ControlProps {
  'aria-haspopup': 'menu' | 'dialog'
  'aria-expanded': boolean
  onPointerDown: () => void
  onClick: () => void
}

/** A control with the menu or panel that it opens; a second press closes it. */
export function Anchored({
  kind,
  control,
  children,
}: {
  kind: ControlProps['aria-haspopup']
  control: (props: ControlProps) => ReactNode
  children: (panel: { isOpen: boolean; onClose: () => void }) => ReactNode
}) {
  const [isOpen, setIsOpen] = useState(false)
  // A press outside of the panel closes it, so the click of the same press would open it again.
  const wasOpen = useRef(false)
  return (
    <span className="anchored">
      {control({
        'aria-haspopup': kind,
        'aria-expanded': isOpen,
        onPointerDown: () => {
          wasOpen.current = isOpen
        },
        onClick: () => {
          setIsOpen(!wasOpen.current)
          wasOpen.current = false
        },
      })}
      {children({ isOpen, onClose: () => setIsOpen(false) })}
    </span>
  )
}
