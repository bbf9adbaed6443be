/**
 * Comparison key of an e-mail address (docs/contract/identity.md#e-mail-addresses): the letters A to Z in lower case,
 * every other character unchanged. The function `email_key` of the database has the same rule. No normalization (NFKC):
 * an address that only looks the same may be another mailbox, and must not match the user.
 */
export function foldEmail(address: string): string {
  return address.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
