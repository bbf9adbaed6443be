/** A failure class in words. One of a newer service stands as it is. `translate` is that of `useTranslation`. */
export function faultName(fault: string, translate: unknown): string {
  const key = `fault.${fault}`
  // The keys of all texts are too many for the type of a key that is put together.
  const name = (translate as (key: string) => string)(key)
  return name === key ? fault : name
}
