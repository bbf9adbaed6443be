import type { Explained } from './explained.ts'

/** The survivors of `src/oauth` that are explained. */
export const EXPLAINED_OF_OAUTH: readonly Explained[] = [
  {
    path: 'src/oauth/claims/asked-claims.ts',
    lineText: "if (typeof text !== 'string') return {}",
    change: "typeof text !== 'string' -> false",
    reason: 'saves an exception: what is no text is no JSON of an object either',
  },
  {
    path: 'src/oauth/client/imported/imported-client.ts',
    lineText: 'if (secrets.length > 0)',
    change: '> -> >=',
    reason: 'saves a statement that inserts no row',
  },
  {
    path: 'src/oauth/client/secret-list.ts',
    lineText: 'if (nowMs - (notedMs.find(key) ?? Number.NEGATIVE_INFINITY) < USE_PRECISION_MS) return',
    change: 'notedMs.find(key) ?? Number.NEGATIVE_INFINITY -> (notedMs.find(key))',
    reason: 'only for the types: no difference to undefined is less than anything',
  },
  {
    path: 'src/oauth/consent/consent.ts',
    lineText: 'const foreign = chosen?.findIndex((name) => !asked.includes(name)) ?? -1',
    change:
      'chosen?.findIndex((name) => !asked.includes(name)) ?? -1 -> (chosen?.findIndex((name) => !asked.includes(name)))',
    reason: 'only for the types: undefined is not as large as 0',
  },
  {
    path: 'src/oauth/consent/consent.ts',
    lineText: 'return before?.scopes.some((name) => !scopes.includes(name)) ?? false',
    change: 'false -> true',
    reason: 'only costs statements: a new grant has neither sessions nor families that could be narrowed',
  },
  {
    path: 'src/oauth/consent/sign-in-demand.ts',
    lineText: 'const claims = segment && parseClaims(segment)',
    change: 'segment -> true',
    reason: 'no bytes are no JSON, which names nobody either',
  },
  {
    path: 'src/oauth/exchange/access-token.ts',
    lineText: 'isSigned(STAND_IN.token, standInKey)',
    change: 'isSigned(STAND_IN.token, standInKey) -> ;',
    reason: 'only has an early refusal take as long as a late one, which no test measures',
  },
  {
    path: 'src/oauth/provider/provider-pages.ts',
    lineText: "if (typeof ctx.body === 'string') replaceSubmitPage(ctx, { brand, texts: chooseOwnTexts(ctx) })",
    change: "typeof ctx.body === 'string' -> true",
    reason: 'saves the choice of a language: what is no text has no form',
  },
  {
    path: 'src/oauth/provider/provider-mount.ts',
    lineText: 'if (lastBase.text === text) return lastBase',
    change: 'lastBase.text === text -> false',
    reason: 'only has the address of the service be parsed again',
  },
  {
    path: 'src/oauth/provider/token-family/token-family.ts',
    lineText: 'if (found && isSame(tokenFamily, members)) return tokenFamily',
    change: 'found -> true',
    reason: 'saves a comparison: a new family has no scopes yet',
  },
  {
    path: 'src/oauth/exchange/exchange.ts',
    lineText: 'isOwn: true,',
    change: 'true -> false',
    reason: 'the subject of a refused token is nobody at a managed engine either',
  },
  {
    path: 'src/oauth/exchange/exchange.ts',
    lineText: 'isKept: false,',
    change: 'false -> true',
    reason: 'a refused token is looked up to cost as much as any other; what is found is not read',
  },
  {
    path: 'src/oauth/exchange/exchange.ts',
    lineText: '...(presented.token.authTime && { authTime: presented.token.authTime }),',
    change: 'presented.token.authTime -> true',
    reason: 'only for the types: a time that is null counts as absent',
  },
  {
    path: 'src/oauth/exchange/exchange.ts',
    lineText: 'subject: isOwn ? null : subject,',
    change: 'isOwn -> false',
    reason: 'claim_exchange reads the subject only where there is no user id',
  },
  {
    path: 'src/oauth/provider/state/state-reader.ts',
    lineText: 'if (!browser) return undefined',
    change: '!browser -> false',
    reason: 'only for the types: both callers have looked',
  },
  {
    path: 'src/oauth/provider/state/state-reader.ts',
    lineText: 'const tokenFamilyId = clientId === undefined ? undefined : readTokenFamilyId(loaded.session, clientId)',
    change: 'clientId === undefined -> false',
    reason: 'only for the types: no session has an authorization of no client',
  },
  {
    path: 'src/oauth/provider/state/state-reader.ts',
    lineText: 'return Object.hasOwn(authorizations, clientId) ? authorizations[clientId]?.grantId : undefined',
    change: 'Object.hasOwn(authorizations, clientId) -> true',
    reason: 'what every object has is without a grant',
  },
  {
    path: 'src/oauth/provider/state/session-bridge.ts',
    lineText:
      "if (state && user) state.browser = { ...user, clientId: typeof clientId === 'string' ? clientId : undefined }",
    change: 'state -> true',
    reason: 'only for the types: a request has a state always',
  },
  {
    path: 'src/oauth/exchange/token-exchange-form.ts',
    lineText: "return typeof value === 'string' && value.length <= SCOPE_LENGTH_LIMIT && SCOPE_PATTERN.test(value)",
    change: "typeof value === 'string' -> true",
    reason: 'only for the types: a form with anything but text was refused before',
  },
  {
    path: 'src/oauth/exchange/token-exchange-form.ts',
    lineText: "return typeof value === 'string' ? value : undefined",
    change: "typeof value === 'string' -> true",
    reason: 'only for the types: a form with anything but text was refused before',
  },
  {
    path: 'src/oauth/provider/state/adapter.ts',
    lineText: 'forgetRow(Provider.ctx, keyOf(id))',
    change: 'forgetRow(Provider.ctx, keyOf(id)) -> ;',
    reason: 'the library neither reads nor writes a row again in the request that has deleted it',
  },
  {
    path: 'src/oauth/provider/state/request-state.ts',
    lineText: 'if (state.spent) return false',
    change: 'false -> true',
    reason: 'a request to the token endpoint spends one code or token',
  },
  {
    path: 'src/oauth/provider/state/stranger.ts',
    lineText: 'const network = strictPerMinute * (SHARES[model] ?? 1)',
    change: 'SHARES[model] ?? 1 -> (SHARES[model])',
    reason: 'only for the types: a row of a model without a share is not counted',
  },
  {
    path: 'src/oauth/provider/overrides.ts',
    lineText: 'return userinfo && { userinfo }',
    change: 'userinfo -> true',
    reason: 'the library reads only the claims of userinfo from what is kept, and finds none there either',
  },
  {
    path: 'src/oauth/provider/overrides.ts',
    lineText: 'if (client && kept && kept === findKeptClient(String(id))) built.set(kept, client)',
    change: 'client && kept && kept === findKeptClient(String(id)) -> false',
    reason: 'only costs time: the library finds what it built of the same settings, by their text',
  },
  {
    path: 'src/oauth/provider/client-keys.ts',
    lineText: "if ('status' in found && found.status === 200 && !isReplaced) kept.put(url, answer, KEYS_MS)",
    change: "'status' in found -> true",
    reason: 'only for the types: a fault has no status',
  },
  ...["SESSION_QUESTIONS.has(Provider.ctx?.oidc?.route ?? '') -> true", "Provider.ctx?.oidc?.route ?? '' -> ('')"].map(
    (change) => ({
      path: 'src/oauth/provider/state/adapter.ts',
      lineText: "const isAsked = model === 'Session' && SESSION_QUESTIONS.has(Provider.ctx?.oidc?.route ?? '')",
      change,
      reason:
        'only saves opening an id that nobody reads: the library finds a session by its uid on these routes alone',
    }),
  ),
  {
    path: 'src/oauth/provider/state/adapter.ts',
    lineText: "const jti = id ?? (typeof sealedId === 'string' ? keyring.open(sealedId, SEAL_CONTEXT) : undefined)",
    change: "typeof sealedId === 'string' -> true",
    reason: 'only for the types: what is found by another key than its id has the id sealed',
  },
  {
    path: 'src/oauth/provider/state/session-bridge.ts',
    lineText:
      "if (state && user) state.browser = { ...user, clientId: typeof clientId === 'string' ? clientId : undefined }",
    change: 'user -> true',
    reason: 'only costs a read, which finds nobody without a user and a session',
  },
  {
    path: 'src/oauth/provider/state/state-batch.store.ts',
    lineText:
      "from (select distinct consent from written where consent is not null and model in ('AccessToken', 'RefreshToken')) w",
    change: 'consent is not null -> true',
    reason: 'no grant has the id null, which the next line asks for',
  },
  {
    path: 'src/oauth/signing-key/issuer-keys.ts',
    lineText: "if (kty !== 'EC' || crv !== 'P-256') return false",
    change: "kty !== 'EC' -> false",
    reason: 'no key of another type has the curve P-256: it is not read',
  },
  {
    path: 'src/oauth/provider/submit-page.ts',
    lineText: "if (typeof body !== 'string' || !body.includes('<title>Submitting Callback</title>')) return undefined",
    change: "!body.includes('<title>Submitting Callback</title>') -> false",
    reason: 'only saves a search: no other page of the library has such a form',
  },
  {
    path: 'src/oauth/provider/overrides.ts',
    lineText: 'Client.find = async (id) => {',
    change:
      "Client.find = async (id) => { const kept = typeof id === 'string' ? findKeptClient(id) : undefined const cached = kept &... -> ;",
    reason: 'only costs a hash of the payload, by which the library finds the client that it has built',
  },
  {
    path: 'src/oauth/provider/overrides.ts',
    lineText: 'if (client && kept && kept === findKeptClient(String(id))) built.set(kept, client)',
    change: 'built.set(kept, client) -> ;',
    reason: 'only costs a hash of the payload, by which the library finds the client that it has built',
  },
]
