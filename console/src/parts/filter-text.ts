/** Escapes a text as a value of a filter of the API (docs/contract/api.md#filters). Pure. */
export const escapeFilter = (text: string) => text.replaceAll(/[\\,]/g, '\\$&')
