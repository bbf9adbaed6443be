/** Names that a change adds, and those that it removes: in colour, with a sign, and struck through. */
export function ChangeList({ added, removed }: { added: readonly string[]; removed: readonly string[] }) {
  return (
    <ul className="diff">
      {added.map((name) => (
        <li key={`+${name}`} data-change="+" data-kind="added">
          + {name}
        </li>
      ))}
      {removed.map((name) => (
        <li key={`-${name}`} data-change="-" data-kind="removed">
          − {name}
        </li>
      ))}
    </ul>
  )
}
