import { Tooltip } from '@mantine/core'
import type { RefObject } from 'react'

interface HintTextProps {
  id: string
  target: RefObject<HTMLElement | null>
  label: string
  isOpen: boolean
}

/** The text of a hint, at the element that it explains. */
export function HintText({ id, target, label, isOpen }: HintTextProps) {
  return <Tooltip id={id} target={target} label={label} opened={isOpen} role="tooltip" />
}
