import type { Schemas } from '@signalbox/client'
import type { useTranslation } from 'react-i18next'

type Fault = Exclude<Schemas['Attempt']['error_class'], null>

/** A failure class in words. One of a newer service stands as it is. */
export function faultName(fault: string, t: ReturnType<typeof useTranslation>['t']): string {
  const key = `fault.${fault as Fault}` as const
  const name = t(key)
  return name === key ? fault : name
}
