/**
 * Comparison key of an e-mail address (docs/contract/identity.md#e-mail-addresses): the letters A to Z in lower case, every
 * other character as it is. The function `email_key` of the database is the same rule. No normalization (NFKC): what merely
 * looks like an address may be another mailbox, and a user must never be found by it.
 */
export function foldEmail(address: string): string {
  return address.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
