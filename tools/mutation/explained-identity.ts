import type { Explained } from './explained.ts'

const FOLDER = 'src/identity/connection/saml/response'
const SETTINGS = 'src/identity/connection/saml/settings'
const XML = 'src/identity/connection/saml/xml'

/** A signature of the accepted form has all of these children, or none is taken. */
const ALL_OR_NONE = 'only for the types: the children are taken together, or none is'

/** The survivors of SAML connections and of sessions that are explained; `explained.ts` has the others of identity. */
export const EXPLAINED_OF_IDENTITY: readonly Explained[] = [
  {
    path: 'src/identity/session/refresh.ts',
    lineText: "if (!key) throw new Error('a refresh needs at least one key')",
    change: '!key -> false',
    reason: 'only for the types: the service does not start without a key',
  },
  ...['!salt -> false', '!hash -> false'].map((change) => ({
    path: 'src/identity/session/refresh.ts',
    lineText: 'if (!salt || !hash) return undefined',
    change,
    reason: 'only for the types: the statement that spends a token writes both',
  })),
  ...['account !== null -> true', 'connection !== null -> true'].map((change) => ({
    path: 'src/identity/caller/caller.store.ts',
    lineText: 'const isNarrowed = account !== null && connection !== null',
    change,
    reason: 'only for the types: an account that narrows comes with its connection',
  })),
  ...[
    'case when n.account is not null and n.proven_until is null',
    `case when n.account is not null then membership_patterns_at(u.document_id, n.account, true) end as "lackedPatterns"\``,
  ].map((lineText) => ({
    path: 'src/identity/caller/caller.store.ts',
    lineText,
    change: 'n.account is not null -> true',
    reason: 'saves a look-up: where no account narrows, the patterns are not read',
  })),
  ...['clientId === null -> false', 'scope === null -> false'].map((change) => ({
    path: 'src/identity/caller/caller.store.ts',
    lineText: 'client: clientId === null || scope === null ? null : { id: clientId, scope },',
    change,
    reason: 'only for the types: a session has both or none, which its table checks',
  })),
  {
    path: 'src/identity/address-proof/address-proof.store.ts',
    lineText: "if (!admitted) throw new Error('the statement that admits a proof of an address returns a row')",
    change: '!admitted -> false',
    reason: 'only for the types: the statement returns a row always',
  },
  {
    path: 'src/identity/account/invitation/invitation.store.ts',
    lineText: "if (!row) throw new Error('the statement that counts invitations returns a row')",
    change: '!row -> false',
    reason: 'only for the types: the statement returns a row always',
  },
  {
    path: 'src/identity/sso/handshake-token.ts',
    lineText: "if (secret === undefined) throw new Error('handshake tokens need at least one secret')",
    change: 'secret === undefined -> false',
    reason: 'only for the types: the service does not start without a secret',
  },
  {
    path: `${FOLDER}/read-assertion.ts`,
    lineText: 'if (text === undefined || !INSTANT.test(text)) return undefined',
    change: 'text === undefined -> false',
    reason: 'only for the types: what is missing is no instant by its pattern either',
  },
  {
    path: `${FOLDER}/read-person.ts`,
    lineText: "return values.filter((value) => value !== undefined && value !== '') as string[]",
    change: 'value !== undefined -> true',
    reason: 'only for the types: a value with elements was refused in the line before',
  },
  {
    path: `${FOLDER}/response-shape.ts`,
    lineText: "if (id === undefined) return refuse('signature_form', 'ID')",
    change: 'id === undefined -> false',
    reason:
      'only for the types: the form of a signature of an element without an id was refused before, by the same words',
  },
  {
    path: `${FOLDER}/response-shape.ts`,
    lineText: "if (!status || second || !code || codes.length > 1) return refuse('not_a_response', 'Status')",
    change: '!status -> false',
    reason: 'only for the types: no code is read without a status',
  },
  ...['!signedInfo -> false', '!value -> false'].map((change) => ({
    path: `${FOLDER}/signature-shape.ts`,
    lineText: "if (!signedInfo || !value || !isBase64(value)) return malformed('Signature')",
    change,
    reason: ALL_OR_NONE,
  })),
  ...['!canonical -> false', '!method -> false', '!reference -> false'].map((change) => ({
    path: `${FOLDER}/signature-shape.ts`,
    lineText:
      "if (!canonical || !method || !reference || !isBare(canonical) || !isBare(method)) return malformed('SignedInfo')",
    change,
    reason: ALL_OR_NONE,
  })),
  ...['!transforms -> false', '!digestMethod -> false', '!digestValue -> false'].map((change) => ({
    path: `${FOLDER}/signature-shape.ts`,
    lineText: 'if (!transforms || !digestMethod || !digestValue || !isBare(digestMethod) || !isBase64(digestValue))',
    change,
    reason: ALL_OR_NONE,
  })),
  ...['!enveloped -> false', '!exclusive -> false'].map((change) => ({
    path: `${FOLDER}/signature-shape.ts`,
    lineText: 'if (!enveloped || !exclusive || !isBare(enveloped)) return false',
    change,
    reason: ALL_OR_NONE,
  })),
  {
    path: `${FOLDER}/signature-shape.ts`,
    lineText:
      'const expected = last !== undefined && element.children.length > names.length ? [...names, last] : names',
    change: 'last !== undefined -> true',
    reason: 'only for the types: no element has the name undefined',
  },
  {
    path: `${FOLDER}/signed-info.ts`,
    lineText: 'if (!signedInfo || !value || hash === undefined) return undefined',
    change: '!signedInfo -> false',
    reason: 'only for the types: without a list there is no method, and so no hash',
  },
  {
    path: `${FOLDER}/signed-info.ts`,
    lineText: 'const sorted = [...attributes].toSorted(([name], [other]) => (name < other ? -1 : 1))',
    change: '< -> <=',
    reason: 'no element has an attribute twice',
  },
  {
    path: `${FOLDER}/signed-info.ts`,
    lineText: 'rendered: isNew ? new Map([...rendered, [prefix, namespace]]) : rendered,',
    change: 'isNew -> true',
    reason: 'saves a copy: what is not new is in it already',
  },
  {
    path: `${FOLDER}/verify-response.ts`,
    lineText: "if (typeof assertion === 'string') return refuse(assertion)",
    change: "typeof assertion === 'string' -> false",
    reason: 'only for the types: the signed text is an element of a document that was read strictly',
  },
  {
    path: `${FOLDER}/verify-response.ts`,
    lineText: "if (checked.id !== shape.assertionId) return refuse('signature_form', 'ID')",
    change: 'checked.id !== shape.assertionId -> false',
    reason: 'a second guard: the form has one assertion, so the library can verify no other one',
  },
  {
    path: `${FOLDER}/verify-signature.ts`,
    lineText: 'return signed === undefined ? undefined : { signed, signers }',
    change: 'signed === undefined -> false',
    reason: 'only for the types: the library throws where it has verified no assertion',
  },
  {
    path: `${SETTINGS}/idp-certificate.ts`,
    lineText: 'exponent !== undefined && exponent >= 65_537n && exponent < 2n ** 32n',
    change: 'exponent !== undefined -> true',
    reason: 'only for the types: every key of RSA has an exponent, and undefined is not as large as anything',
  },
  {
    path: `${SETTINGS}/idp-metadata.ts`,
    lineText: "const certificates = read.flatMap((found) => ('pem' in found ? [found.pem] : []))",
    change: "'pem' in found -> true",
    reason: 'only for the types: metadata with a fault was refused before',
  },
  ...['certificates === undefined -> false', '!certificatesEndAt -> false'].map((change) => ({
    path: `${SETTINGS}/saml-settings.ts`,
    lineText: 'if (issuer === undefined || ssoUrl === undefined || certificates === undefined || !certificatesEndAt)',
    change,
    reason: 'only for the types: certificates come with their end, or both are missing',
  })),
  {
    path: `${XML}/read-markup.ts`,
    lineText: "if (end === -1 || reader.text[end + 2] !== '>') failXml('not_xml')",
    change: 'end === -1 -> false',
    reason: 'reads the second character of the document, which is > in none',
  },
  {
    path: `${XML}/read-markup.ts`,
    lineText: 'if (ended) ended.end = reader.at',
    change: 'ended -> true',
    reason: 'only for the types: an end without a start was refused before',
  },
  {
    path: `${XML}/read-markup.ts`,
    lineText: "const raw = end === -1 ? failXml('not_xml') : reader.text.slice(reader.at + 1, end)",
    change: 'end === -1 -> false',
    reason: 'goes on at the start of the document, where no name of an attribute stands: refused by the same word',
  },
  {
    path: `${XML}/read-markup.ts`,
    lineText: "const prefix = name === 'xmlns' ? '' : name.slice(6)",
    change: "name === 'xmlns' -> false",
    reason: 'what is behind the sixth character of xmlns is empty, too',
  },
  {
    path: `${XML}/read-markup.ts`,
    lineText: 'for (let index = open.length - 1; index >= 0; index -= 1) {',
    change: '- -> +',
    reason: 'looks for nothing in two places behind the last one',
  },
  {
    path: `${XML}/read-markup.ts`,
    lineText: "if (!raw.includes('&')) return raw",
    change: "!raw.includes('&') -> false",
    reason: 'saves a search: without the sign nothing is replaced',
  },
  {
    path: `${XML}/read-markup.ts`,
    lineText: "const code = Number.parseInt(number?.[1] ?? number?.[2] ?? '0', number?.[1] === undefined ? 10 : 16)",
    change: "number?.[1] ?? number?.[2] ?? '0' -> (number?.[1] ?? number?.[2])",
    reason: 'only for the types: what is no number is no character, as 0',
  },
  {
    path: `${XML}/parse-xml.ts`,
    lineText: 'if (error instanceof XmlError) return error.fault',
    change: 'error instanceof XmlError -> true',
    reason: 'the reader throws no other error',
  },
  ...['start < end -> true', '< -> <='].map((change) => ({
    path: `${XML}/xml-document.ts`,
    lineText: 'while (start < end && isSpace(text.charCodeAt(start))) start += 1',
    change,
    reason: 'nothing behind the text is white space, and what ends before it begins is empty',
  })),
  ...['end > start -> true', '> -> >='].map((change) => ({
    path: `${XML}/xml-document.ts`,
    lineText: 'while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1',
    change,
    reason: 'nothing behind the text is white space, and what ends before it begins is empty',
  })),
]
