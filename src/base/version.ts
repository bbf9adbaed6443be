import packageJson from '../../package.json' with { type: 'json' }

/** The version of the service, from package.json. */
export const VERSION: string = packageJson.version

/** The releases of Node that the service may run on (`config.runtime` in package.json): others have known vulnerabilities. */
export const NODE_RANGE: string = packageJson.config.runtime
