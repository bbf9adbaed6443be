/** Names of the fields whose values differ. Pure. */
export function listDifferences<Fields extends object>(fields: Fields, other: Fields): (keyof Fields & string)[] {
  const names = Object.keys(fields) as (keyof Fields & string)[]
  return names.filter((name) => JSON.stringify(fields[name]) !== JSON.stringify(other[name]))
}
