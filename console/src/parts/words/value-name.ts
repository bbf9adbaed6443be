/**
 * A value in words, by the text `<group>.<value>`; one without such a text stands as it is. `translate` is that of
 * `useTranslation`.
 */
export function valueName(group: string, value: string, translate: unknown): string {
  const key = `${group}.${value}`
  // The keys of all texts are too many for the type of a key that is put together.
  const name = (translate as (key: string) => string)(key)
  return name === key ? value : name
}
