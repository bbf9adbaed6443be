/** Names of the fields whose values differ. Pure. */
export function listDifferences<Fields extends object>(one: Fields, other: Fields): (keyof Fields & string)[] {
  const names = Object.keys(one) as (keyof Fields & string)[]
  return names.filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]))
}
