/** A text in PostgreSQL's form, and the names of its placeholders `$1`, `$2`, ... in their order. */
export interface CompiledText {
  text: string
  names: readonly string[]
}

/** Turns `$name` into `$1`, `$2`, ...; a repeated name is one value. Throws for a numbered placeholder. */
export function compileNames(text: string): CompiledText {
  const numbered = /\$\d+/.exec(text)
  if (numbered) throw new Error(`${numbered[0]} has no name in the statement: ${text.trim().slice(0, 80)}`)
  const names: string[] = []
  const compiled = text.replace(/\$([a-z]\w*)/gi, (_, name: string) => {
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  return { text: compiled, names }
}

/** The values of the placeholders, in their order. Throws when `params` has no member of a name. */
export function valuesOf({ names }: CompiledText, params: object = {}): unknown[] {
  return names.map((name) => {
    const value = (params as Record<string, unknown>)[name]
    if (value === undefined && !(name in params)) throw new Error(`the statement has no value for $${name}`)
    return value
  })
}
