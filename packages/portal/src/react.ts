import { createElement, type ReactElement, useEffect, useRef } from 'react'
import { mountPortal, type PortalOptions } from './portal.ts'

/** Properties of the component: the options of `mountPortal`, and the class of its element. */
export interface PortalProps extends PortalOptions {
  className?: string
}

/** Shows the portal. Another `service` or `title` opens it anew; `getUrl` and `onEvent` may change at each render. */
export function Portal({ service, title, getUrl, onEvent, className }: PortalProps): ReactElement {
  const element = useRef<HTMLDivElement>(null)
  const latest = useRef({ getUrl, onEvent })
  useEffect(() => {
    latest.current = { getUrl, onEvent }
  })
  useEffect(() => {
    if (!element.current) return
    const portal = mountPortal(element.current, {
      service,
      getUrl: (signal) => latest.current.getUrl(signal),
      onEvent: (event) => latest.current.onEvent?.(event),
      ...(title !== undefined && { title }),
    })
    return () => portal.unmount()
  }, [service, title])
  return createElement('div', { ref: element, ...(className !== undefined && { className }) })
}
