import { settings } from '../../frame/settings.ts'

/** The text that says what a callback URL may be, by the settings of the service. */
export const URL_HINT = settings.allowsPrivateTargets ? 'create.url-hint-private' : 'create.url-hint'
