import { Anchor, type AnchorProps } from '@mantine/core'
import { createLink, type LinkComponent } from '@tanstack/react-router'
import type { AnchorHTMLAttributes, Ref } from 'react'

type PlainProps = Omit<AnchorProps, 'href'> & AnchorHTMLAttributes<HTMLAnchorElement> & { ref?: Ref<HTMLAnchorElement> }

/** Title of a link that may be cut: its whole text. */
const titleOf = ({ title, truncate, children }: PlainProps) =>
  title ?? (truncate && typeof children === 'string' ? children : undefined)

const RoutedAnchor = createLink((props: PlainProps) => <Anchor {...props} title={titleOf(props)} />)

/** A link to another screen, which looks like any link. */
export const TextLink: LinkComponent<(props: PlainProps) => React.ReactElement> = (props) => <RoutedAnchor {...props} />
