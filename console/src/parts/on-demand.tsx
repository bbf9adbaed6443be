import { type ComponentType, lazy, Suspense, useEffect, useState } from 'react'

interface Opened {
  isOpen: boolean
}

/** A dialog or menu whose code is loaded when it is first opened, so that the first screen does not wait for it. */
export function buildOnDemand<Props extends Opened>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  const Loaded = lazy(async () => ({ default: await load() })) as unknown as ComponentType<Props>
  return function OnDemand(props: Props) {
    const [isWanted, setIsWanted] = useState(props.isOpen)
    if (props.isOpen && !isWanted) setIsWanted(true)
    return (
      isWanted && (
        <Suspense fallback={null}>
          <Opening part={Loaded} {...props} />
        </Suspense>
      )
    )
  }
}

/** Opens what has just been loaded when it is on the screen: a dialog then knows what had the focus, and gives it back. */
function Opening<Props extends Opened>({ part: Part, ...props }: Props & { part: ComponentType<Props> }) {
  const [isOpen, setIsOpen] = useState(false)
  useEffect(() => setIsOpen(props.isOpen), [props.isOpen])
  return <Part {...(props as unknown as Props)} isOpen={isOpen} />
}
