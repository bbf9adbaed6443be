/** A call of the API: the operation that a screen uses. */
export interface ShownCall {
  operation: string
  method: string
  path: string
  query?: Record<string, string | readonly string[]>
  body?: unknown
}

/** The call as a command of curl. Pure. */
export function toCurl({ method, path, query = {}, body }: ShownCall, origin: string): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().map((item) => [name, String(item)] as [string, string]),
  )
  const search = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}'${origin}${path}${search}'`]
  lines.push("-H 'authorization: Bearer $SIGNALBOX_TOKEN'".replaceAll("'", '"'))
  if (body !== undefined)
    lines.push("-H 'content-type: application/json'", `-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`)
  return lines.join(' \\\n  ')
}

/** The call in a program with `@signalbox/client`. Pure. */
export function toProgram({ operation, path, query, body }: ShownCall): string {
  const ids = /\/([0-9a-f-]{36})/.exec(path)?.[1]
  const input = { ...(ids && { path: { id: ids } }), ...(query && { query }), ...(body !== undefined && { body }) }
  const shown = Object.keys(input).length === 0 ? '' : JSON.stringify(input, null, 2)
  return `await signalbox.${operation}(${shown})`
}
