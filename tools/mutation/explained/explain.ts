/** Survivors of one file that have one reason: its text, then the lines with their changes. */
export type Reason = readonly [reason: string, ...survivors: (readonly [lineText: string, change: string])[]]

/** The explanations by path, as a list. Pure. */
export function listExplained(byPath: Readonly<Record<string, readonly Reason[]>>) {
  return Object.entries(byPath).flatMap(([path, reasons]) =>
    reasons.flatMap(([reason, ...survivors]) =>
      survivors.map(([lineText, change]) => ({ path, lineText, change, reason })),
    ),
  )
}
