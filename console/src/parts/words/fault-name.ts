import { valueName } from './value-name.ts'

/** A failure class in words. One of a newer service stands as it is. `translate` is that of `useTranslation`. */
export const faultName = (fault: string, translate: unknown): string => valueName('fault', fault, translate)
