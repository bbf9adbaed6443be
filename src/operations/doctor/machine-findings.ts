import { type Finding, fail, warn } from './finding.ts'

/** A name of a configured server, and the result of the look-up. */
export interface NameFacts {
  setting: string
  host: string
  /** The code of the failed look-up. Undefined when it has an address. */
  error: string | undefined
}

/** Classifies the name service. `servers`: number of configured name servers. */
export function classifyNames({ servers, names }: { servers: number; names: readonly NameFacts[] }): Finding[] {
  const findings: Finding[] = []
  if (servers === 0)
    findings.push(
      fail(
        'name_servers_missing',
        'This machine has no name server: no webhook with a name can be delivered.',
        'Configure one in /etc/resolv.conf or in the network of the container.',
      ),
    )
  for (const { setting, host, error } of names)
    if (error !== undefined)
      findings.push(
        fail(
          'name_unresolved',
          `${host} of ${setting} has no address (${error}).`,
          `Correct ${setting}, or the name service of this machine.`,
        ),
      )
  return findings
}

/** The folder of SIGNALBOX_DATA_DIR. */
export interface DiskFacts {
  directory: string
  /** The code of a failed access, such as EACCES. Undefined when it can be written, or created. */
  error: string | undefined
  /** Free space for the user of the service. */
  freeBytes: number
}

const MIB = 1024 * 1024
const DISK_FAILURE_BYTES = 100 * MIB
const DISK_WARNING_BYTES = 1024 * MIB

/** Classifies the disk of SIGNALBOX_DATA_DIR. */
export function classifyDisk({ directory, error, freeBytes }: DiskFacts): Finding[] {
  if (error !== undefined)
    return [
      fail(
        'data_dir_unwritable',
        `SIGNALBOX_DATA_DIR ${directory} cannot be read and written (${error}).`,
        'Give it to the user who runs Signalbox, or set another one.',
      ),
    ]
  if (freeBytes >= DISK_WARNING_BYTES) return []
  const detail = `The disk of SIGNALBOX_DATA_DIR ${directory} has ${Math.floor(freeBytes / MIB)} MiB left.`
  const remedy = 'Free some space, or set SIGNALBOX_DATA_DIR to another disk.'
  return [freeBytes < DISK_FAILURE_BYTES ? fail('disk_full', detail, remedy) : warn('disk_low', detail, remedy)]
}

/** A port that the service wants to listen on. */
export interface PortFacts {
  setting: 'PORT' | 'METRICS_PORT'
  port: number
  host: string
  /** The code of a failed listen. Undefined when the port is free. */
  error: string | undefined
  holder: { pid: number; command: string } | undefined
  /** Whether an unreported process answers as a Signalbox. */
  isOurs?: boolean
}

/** Classifies a port. */
export function classifyPort({ setting, port, host, error, holder, isOurs = false }: PortFacts): Finding[] {
  if (error === undefined) return []
  if (error === 'EADDRINUSE') return [classifyHolder({ setting, port, holder, isOurs })]
  if (error === 'EACCES')
    return [
      fail('port_not_permitted', `No permission to listen on ${setting} ${port}.`, `Set ${setting} to 1024 or more.`),
    ]
  return [
    fail(
      'host_unknown',
      `HOST ${host} is not an address of this machine (${error}).`,
      'Set HOST to 127.0.0.1, 0.0.0.0 or ::.',
    ),
  ]
}

function classifyHolder({
  setting,
  port,
  holder,
  isOurs,
}: Pick<PortFacts, 'setting' | 'port' | 'holder' | 'isOurs'>): Finding {
  const by = holder ? `process ${holder.pid} (${holder.command})` : 'another process'
  if (isOurs || (holder && /(?:src\/main\.[jt]s|signalbox\.mjs)["']? (?:serve|start)\b/.test(holder.command)))
    return warn(
      'port_of_running_service',
      `A Signalbox runs on ${setting} ${port}: ${by}.`,
      'Nothing, when it is the one that you ask about. Stop it before you start another one on this port.',
    )
  return fail('port_in_use', `${setting} ${port} is held by ${by}.`, `Stop it, or set ${setting} to a free port.`)
}

/** A configured server that the service connects to. */
export interface ServerFacts {
  setting: string
  host: string
  port: number
  /** The code of a failed connection. Undefined when it was accepted. */
  error: string | undefined
}

/** Facts that decide about outbound connections. */
export interface EgressFacts {
  appEnv: string
  proxyVariables: readonly string[]
  privateTargets: number
  servers: readonly ServerFacts[]
}

/** Classifies connections to the outside. */
export function classifyEgress({ appEnv, proxyVariables, privateTargets, servers }: EgressFacts): Finding[] {
  const findings: Finding[] = []
  if (proxyVariables.length > 0)
    findings.push(
      warn(
        'proxy_ignored',
        `${proxyVariables.join(' and ')} is set, and deliveries do not use it: they connect to the address that was checked.`,
        'Allow direct DNS and HTTPS to public addresses from this machine.',
      ),
    )
  if (privateTargets > 0 && appEnv === 'certification')
    findings.push(
      warn(
        'private_targets_allowed',
        `WEBHOOK_ALLOWED_PRIVATE_TARGETS opens ${privateTargets} private targets to every webhook.`,
        'Remove those that no test receiver needs.',
      ),
    )
  for (const { setting, host, port, error } of servers)
    if (error !== undefined)
      findings.push(
        warn(
          'server_unreachable',
          `${host}:${port} of ${setting} does not accept a connection (${error}).`,
          `Start it, correct ${setting}, or open the way to it.`,
        ),
      )
  return findings
}
