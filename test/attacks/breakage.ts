/** One thing that a broken provider does. Each attack names the one that it succeeds with. */
export type Breakage =
  | 'redirect URIs are compared by their beginning'
  | 'redirect URIs are compared by their host'
  | 'redirect URIs are compared by the end of their host'
  | 'redirect URIs are compared by the beginning of their host'
  | 'redirect URIs are compared after they are normalized'
  | 'every loopback redirect URI is accepted'
  | 'the port of every redirect URI is free'
  | 'custom schemes are compared by their beginning'
  | 'secrets of clients are not compared'
  | 'clients may ask for every scope'
  | 'clients reach tokens of others'
  | 'codes are good for every client'
  | 'codes are good for every redirect URI'
  | 'codes are redeemed without a verifier'
  | 'the challenge is taken for the verifier'
  | 'verifiers are not compared'
  | 'codes can be redeemed again'
  | 'PKCE is optional'
  | 'PKCE methods are all taken for S256'
  | 'pushed requests can be used again'
  | 'refresh tokens are good for every client'
  | 'refresh tokens can be used again'
  | 'refresh tokens pass as access tokens'
  | 'signatures of access tokens are not checked'
  | 'families of tokens never end'
  | 'tokens are issued for every API'
  | 'every origin reads tokens'
  | 'every origin reads pages'
  | 'redirects repeat the form'
  | 'errors show the request as it is'
  | 'answers have no iss'
  | 'answers have no state'
  | 'answers are cached'
  | 'the host of a request is believed'
  | 'the last of several values counts'
  | 'forms of the provider have no token'
  | 'pages can be framed'
  | 'pages send their address on'
  | 'origins of forms are not checked'
  | 'tokens of forms are not checked'

/** Which breakage is on; undefined for the provider as it is. */
export interface BreakSwitch {
  on: Breakage | undefined
}

/** Dependencies of an attack. */
export interface AttackCase<Fixture> {
  name: string
  /** Tries the attack. Whether it succeeded. */
  attack: (fixture: Fixture) => Promise<boolean>
  brokenBy: Breakage
}
