/**
 * Ports that callback URLs must not use (docs/contract/webhooks.md#callback-guard). A user controls a part of the body, so a
 * line-based server could execute one of its lines as a command. Three groups: the "bad ports" of the Fetch standard, which
 * browsers refuse for the same reason; databases, caches, brokers and remote desktops without HTTP; and control planes with
 * HTTP that are not subscribers (Docker, etcd, kubelet, Elasticsearch). Application ports such as 3000, 5000, 8000, 8080 or
 * 8443 stay open.
 */
const BAD_PORTS =
  '0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 139 143 ' +
  '161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 1723 2049 3659 4045 ' +
  '4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080'

const NAMED_PORTS: Record<number, string> = {
  0: 'no service',
  21: 'FTP',
  22: 'SSH',
  23: 'Telnet',
  25: 'SMTP',
  53: 'DNS',
  88: 'Kerberos',
  110: 'POP3',
  143: 'IMAP',
  389: 'LDAP',
  445: 'SMB',
  465: 'SMTP',
  464: 'Kerberos',
  587: 'SMTP',
  636: 'LDAP',
  873: 'rsync',
  1080: 'SOCKS',
  1194: 'OpenVPN',
  993: 'IMAP',
  995: 'POP3',
  1433: 'SQL Server',
  1434: 'SQL Server',
  1521: 'Oracle',
  1883: 'MQTT',
  2181: 'ZooKeeper',
  2375: 'Docker',
  2376: 'Docker',
  2377: 'Docker',
  2379: 'etcd',
  2380: 'etcd',
  2483: 'Oracle',
  2484: 'Oracle',
  3268: 'LDAP',
  3269: 'LDAP',
  3260: 'iSCSI',
  3306: 'MySQL',
  3389: 'remote desktop',
  3690: 'Subversion',
  4222: 'NATS',
  4369: 'Erlang port mapper',
  5222: 'XMPP',
  5269: 'XMPP',
  5432: 'PostgreSQL',
  5671: 'AMQP',
  5672: 'AMQP',
  5900: 'VNC',
  6379: 'Redis',
  6432: 'PgBouncer',
  7687: 'Neo4j',
  8009: 'AJP',
  8883: 'MQTT',
  9042: 'Cassandra',
  9092: 'Kafka',
  9200: 'Elasticsearch',
  9300: 'Elasticsearch',
  9418: 'Git',
  10250: 'kubelet',
  10255: 'kubelet',
  11211: 'memcached',
  26257: 'CockroachDB',
  26379: 'Redis',
  27017: 'MongoDB',
  27018: 'MongoDB',
  27019: 'MongoDB',
  28015: 'RethinkDB',
  33060: 'MySQL',
  61616: 'ActiveMQ',
}

const FORBIDDEN_PORTS = new Map<number, string>([
  ...BAD_PORTS.split(' ').map((port) => [Number(port), 'a service other than HTTP'] as const),
  ...Object.entries(NAMED_PORTS).map(([port, service]) => [Number(port), service] as const),
])

/** The service of a forbidden port, for an error text; `undefined` for an allowed port. */
export function findForbiddenPort(port: number): string | undefined {
  return FORBIDDEN_PORTS.get(port)
}
