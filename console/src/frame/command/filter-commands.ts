/** Something that the palette offers: a screen, or an action. */
export interface Command {
  label: string
  /** The heading that it stands under. */
  group: string
  run: () => void
}

/** The commands whose words begin with those that were typed. Pure. */
export function filterCommands(commands: readonly Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  return commands.filter(({ label }) => {
    const own = label.toLowerCase()
    return words.every((word) => own.split(/[\s/]+/).some((part) => part.startsWith(word)))
  })
}
