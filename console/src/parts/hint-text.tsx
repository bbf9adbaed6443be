import { Tooltip } from '@mantine/core'
import type { RefObject } from 'react'

interface HintTextProps {
  /** The id by which the element names this text as its description; the tooltip around it has one of its own. */
  id: string
  target: RefObject<HTMLElement | null>
  label: string
  isOpen: boolean
}

/** The text of a hint, at the element that it explains. */
export function HintText({ id, target, label, isOpen }: HintTextProps) {
  return <Tooltip target={target} label={<span id={id}>{label}</span>} opened={isOpen} />
}
