import type { RealtimeSettings } from '../../realtime/provider/provider-settings.ts'
import type { Values } from './config-variables.ts'
import { REALTIME_VARIABLES } from './realtime-variables.ts'

/** An accepted setting without effect beside the others. */
export interface IdleSetting {
  name: string
  /** Condition without effect: `in development`. */
  where: string
}

/** The settings of the embedded realtime server alone. */
const EMBEDDED_SERVER = Object.keys(REALTIME_VARIABLES).filter((name) => name.startsWith('REALTIME_'))

/** The given settings that have an effect in other environments only: a start reports them, since files are shared. */
export function listIdleSettings(values: Values, realtime: RealtimeSettings['kind']): IdleSetting[] {
  const appEnv = values.APP_ENV ?? 'development'
  const isDevelopment = appEnv === 'development'
  const isSsoOff = !isDevelopment && (values.SSO_TARGETS ?? []).length === 0
  const rules: [names: readonly string[], isIdle: boolean, where: string][] = [
    [['METRICS_TOKEN'], isDevelopment, 'in development, where /metrics needs no token'],
    [['WEBHOOK_SINK_SECRET'], appEnv === 'production' || appEnv === 'test', `in ${appEnv}, which has no sink`],
    [['SSO_HANDSHAKE_SECRET', 'SSO_HANDSHAKE_ISSUER', 'SSO_ACCEPT_SESSION_JWT'], isSsoOff, 'without SSO_TARGETS'],
    [['CELL_DISK_BYTES'], values.EVENT_LOG_URL === undefined, 'without EVENT_LOG_URL, which cells need'],
    [EMBEDDED_SERVER, realtime !== 'embedded', 'without the embedded realtime server'],
  ]
  return rules.flatMap(([names, isIdle, where]) =>
    isIdle ? names.filter((name) => values[name as keyof Values] !== undefined).map((name) => ({ name, where })) : [],
  )
}
