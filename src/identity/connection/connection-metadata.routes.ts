import { defineRoute, type Routes } from '../../http/route/route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { loadAccount } from '../account/account.ts'
import { ACCOUNT_ROW, readOwnAccount } from '../account/own-account.ts'
import { checkMayConnect } from './connection.ts'
import { importMetadata, type MetadataDeps } from './saml/settings/import-metadata.ts'
import { MetadataRow, ReadMetadataBody, toCertificateRows } from './saml/settings/saml-settings.schema.ts'

/** Settings of a SAML connection from the metadata of its provider. */
export const connectionMetadataRoutes: Routes<MetadataDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/identity/account/{id}/connection/saml-metadata',
      resource: 'connection',
      action: 'read-metadata',
      accountScope: 'account',
      ownAccounts: true,
      event: 'none',
      bodyLimitBytes: 196_608,
      summary: 'Read the settings of a SAML provider from its metadata',
      description: 'From the XML, or once from its URL. Stores nothing: create or change a connection with the answer.',
      params: IdParams,
      body: ReadMetadataBody,
      data: MetadataRow,
      problems: ['dependency_unavailable'],
    },
    {
      row: ACCOUNT_ROW,
      prepare: async (deps: MetadataDeps, { params, scope, caller, body, now }) => {
        checkMayConnect(caller, readOwnAccount({ params, scope }))
        return importMetadata(deps, { ...body, now })
      },
      handle: async (_deps, { db, params, scope, prepared }) => {
        await loadAccount(db, { id: params.id, scope })
        return {
          data: {
            idp_entity_id: prepared.entityId,
            sso_url: prepared.ssoUrl,
            certificates: toCertificateRows(prepared.certificates),
            wants_signed_requests: prepared.wantsSignedRequests,
          },
          message: 'Metadata read.',
          changed: [],
        }
      },
    },
  ),
]
