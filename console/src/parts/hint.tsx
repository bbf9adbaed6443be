import { cloneElement, type ReactElement, type Ref, useEffect, useId, useRef, useState } from 'react'
import { buildOnDemand } from './on-demand.tsx'

const HintText = buildOnDemand(async () => (await import('./hint-text.tsx')).HintText)

/** Time that the pointer rests on an element before its hint is shown, in milliseconds. */
const DELAY_MS = 200

interface HintedProps {
  ref?: Ref<HTMLElement>
  'aria-describedby'?: string | undefined
  onPointerEnter?: () => void
  onPointerLeave?: () => void
  onFocus?: () => void
  onBlur?: () => void
}

/**
 * Explains an element while the pointer or the focus is on it; Escape hides the text (WCAG 1.4.13). Until then it costs its
 * element nothing but the listeners: a list has one in each row.
 */
export function Hint({ label, children }: { label: string; children: ReactElement<HintedProps> }) {
  const id = useId()
  const target = useRef<HTMLElement>(null)
  const [isOn, setIsOn] = useState(false)
  const [isOpen, setIsOpen] = useState(false)
  useEffect(() => {
    if (!isOn) return setIsOpen(false)
    const timer = setTimeout(() => setIsOpen(true), DELAY_MS)
    const hide = ({ key }: KeyboardEvent) => key === 'Escape' && setIsOn(false)
    document.addEventListener('keydown', hide)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('keydown', hide)
    }
  }, [isOn])
  return (
    <>
      {cloneElement(children, {
        ref: target,
        'aria-describedby': isOpen ? id : undefined,
        onPointerEnter: () => setIsOn(true),
        onPointerLeave: () => setIsOn(false),
        onFocus: () => setIsOn(true),
        onBlur: () => setIsOn(false),
      })}
      <HintText id={id} target={target} label={label} isOpen={isOpen} />
    </>
  )
}
