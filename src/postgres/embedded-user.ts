/**
 * As whom the embedded PostgreSQL runs, and what that user can reach. All of it is pure: the facts come in, the decision goes out.
 */

/** A line of /etc/passwd. */
export interface PasswdEntry {
  name: string
  uid: number
  gid: number
}

/** The user the server runs as; undefined means "as whoever runs us". */
export interface ServerUser {
  uid: number
  gid: number
}

/** Users a root start falls back to, best first: both exist on practically every Unix and own nothing of value. */
const UNPRIVILEGED_NAMES = ['postgres', 'nobody'] as const

/** Reads the text of /etc/passwd. Lines that are not entries are left out. */
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
  /** Who owns the cluster that is already there; undefined before the first start. */
  clusterOwner: ServerUser | undefined
}

/**
 * Decides as whom initdb and postgres run. PostgreSQL refuses uid 0, so root hands over to the owner of an existing cluster (it insists on
 * owning its files), else to `postgres` or `nobody`. Everyone else stays who they are.
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

/** What `stat` says of a file or directory, as far as access goes. */
export interface AccessFacts {
  mode: number
  uid: number
  gid: number
}

/** Whether `user` may read and enter (directories, programs) or read (other files) the thing with these facts, by its mode bits. */
export function isAccessibleTo(user: ServerUser, facts: AccessFacts, needs: 'enter' | 'read'): boolean {
  const wanted = needs === 'enter' ? 0o1 : 0o4
  if (facts.uid === user.uid) return ((facts.mode >> 6) & wanted) === wanted
  if (facts.gid === user.gid) return ((facts.mode >> 3) & wanted) === wanted
  return (facts.mode & wanted) === wanted
}

/**
 * Whether root may run what lies in a directory that was there before: only root can have put it there and only root can change it.
 * Anything else could be somebody's trap in a world-writable place.
 */
export function isTrustedDirectory(facts: AccessFacts & { isDirectory: boolean }): boolean {
  return facts.isDirectory && facts.uid === 0 && (facts.mode & 0o022) === 0
}

/**
 * How the server is told where its cluster lies. As root on Linux it starts inside the cluster and calls it `/proc/self/cwd`: the change of
 * directory happens before root is given up, and that link leads straight to the open directory without walking down the path. So a cluster
 * below a directory only root may enter (/root, mode 700) works where it is, without loosening anybody's permissions and without moving the
 * data elsewhere. initdb, the postmaster and its backends all stay in that directory, so the name keeps its meaning for all of them.
 */
export function buildClusterArgument(facts: {
  platform: NodeJS.Platform
  user: ServerUser | undefined
  clusterDir: string
}): string {
  return facts.user && facts.platform === 'linux' ? '/proc/self/cwd' : facts.clusterDir
}
