/** A header that is being written. */
export interface HeaderRow {
  name: string
  value: string
}

/** Headers of a webhook at most (docs/contract/webhooks.md#headers-of-the-subscriber). */
export const HEADERS_LIMIT = 10

/** The headers as the API takes them; rows without a name are left out. Pure. */
export function toHeaders(rows: readonly HeaderRow[]): Record<string, string> {
  const named = rows.map(({ name, value }) => [name.trim(), value.trim()] as const).filter(([name]) => name !== '')
  return Object.fromEntries(named)
}

/** A body without its secret and the values of its headers, for a call that is shown and copied. Pure. */
export function withoutValues<Body extends { headers?: Record<string, string>; secret?: string }>(body: Body): Body {
  const { headers, secret } = body
  return {
    ...body,
    ...(headers && { headers: Object.fromEntries(Object.keys(headers).map((name) => [name, '…'])) }),
    ...(secret !== undefined && { secret: '…' }),
  }
}
