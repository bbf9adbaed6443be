/** Decides which user runs the embedded PostgreSQL, and which files that user can reach. */

/** A line of /etc/passwd. */
export interface PasswdEntry {
  name: string
  uid: number
  gid: number
}

/** The user who runs the server; undefined for the user of this process. */
export interface ServerUser {
  uid: number
  gid: number
}

/** Users for a start as root, best first: both exist on nearly every Unix and own no other files. */
const UNPRIVILEGED_NAMES = ['postgres', 'nobody'] as const

/** Parses the text of /etc/passwd, without invalid lines. */
export function parsePasswd(text: string): PasswdEntry[] {
  return text.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':')
    if (!name || !uid || !gid || !/^\d+$/.test(uid) || !/^\d+$/.test(gid)) return []
    return [{ name, uid: Number(uid), gid: Number(gid) }]
  })
}

export interface ServerUserFacts {
  /** The uid of this process; undefined where the system has none (Windows). */
  uid: number | undefined
  passwd: PasswdEntry[]
  /** The owner of the existing cluster; undefined before the first start. */
  clusterOwner: ServerUser | undefined
}

/**
 * Decides which user runs initdb and postgres. PostgreSQL refuses uid 0, so root switches to the owner of an existing
 * cluster (PostgreSQL requires the owner), else to `postgres` or `nobody`. Other users do not switch.
 */
export function chooseServerUser(facts: ServerUserFacts): { user: ServerUser | undefined } | 'none' {
  if (facts.uid !== 0) return { user: undefined }
  if (facts.clusterOwner && facts.clusterOwner.uid !== 0) return { user: facts.clusterOwner }
  for (const name of UNPRIVILEGED_NAMES) {
    const entry = facts.passwd.find((each) => each.name === name && each.uid !== 0)
    if (entry) return { user: { uid: entry.uid, gid: entry.gid } }
  }
  return 'none'
}

/** The fields of `stat` that decide access to a file or directory. */
export interface AccessFacts {
  mode: number
  uid: number
  gid: number
}

/** Whether the mode bits let `user` read and enter (directories, programs) or read (other files). */
export function isAccessibleTo(user: ServerUser, facts: AccessFacts, needs: 'enter' | 'read'): boolean {
  const wanted = needs === 'enter' ? 0o1 : 0o4
  if (facts.uid === user.uid) return ((facts.mode >> 6) & wanted) === wanted
  if (facts.gid === user.gid) return ((facts.mode >> 3) & wanted) === wanted
  return (facts.mode & wanted) === wanted
}

/**
 * Whether root may run programs of an existing directory: only if root owns it and no other user can write to it. Another
 * user could have planted a program in a world-writable place.
 */
export function isTrustedDirectory(facts: AccessFacts & { isDirectory: boolean }): boolean {
  return facts.isDirectory && facts.uid === 0 && (facts.mode & 0o022) === 0
}

/**
 * The path of the cluster for the server. As root on Linux the server starts inside the cluster and uses `/proc/self/cwd`:
 * the change of directory happens before root privileges are dropped, and the link resolves to the open directory without
 * a path traversal. So a cluster below a directory that only root may enter (/root, mode 700) works in place, with
 * unchanged permissions. initdb, the postmaster and its backends all stay in that directory, so the path is valid for all.
 */
export function buildClusterArgument(facts: {
  platform: NodeJS.Platform
  user: ServerUser | undefined
  clusterDir: string
}): string {
  return facts.user && facts.platform === 'linux' ? '/proc/self/cwd' : facts.clusterDir
}
