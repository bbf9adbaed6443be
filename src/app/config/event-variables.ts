import { parseNatsUrl } from '../../carriage/nats/nats-url.ts'
import { copies, flag, httpUrl, integer, list, nkeySeed, streamName, text } from './config-parsers.ts'
import { secretVariable, variable } from './variable.ts'

const GIBIBYTE = 1024 ** 3

/** The settings of recording, and of the log to which events are appended (docs/contract/event-log.md). */
export const EVENT_VARIABLES = {
  ENABLE_API_EVENT_QUEUE: variable(flag, 'true', 'When false, no event is recorded or sent.'),
  AUDIT_RETENTION_DAYS: variable(
    integer(0, 3650),
    '365',
    'Retention of the audit log, in days. 0: entries are never deleted.',
  ),
  EVENT_LOG_URL: secretVariable(
    parseNatsUrl,
    'none: no event log',
    'The servers of NATS whose JetStream gets every event: nats://user:password@host:4222 or tls://, several separated by commas.',
  ),
  EVENT_LOG_CREDENTIALS: secretVariable(
    text,
    'none',
    'The text of a credentials file of NATS, in place of a user in EVENT_LOG_URL.',
  ),
  EVENT_LOG_NKEY: secretVariable(nkeySeed, 'none', 'The seed of an nkey of NATS, likewise.'),
  EVENT_LOG_TLS_CA: variable(
    text,
    'that of the system',
    'A PEM file with the authorities that the certificates of NATS are checked by.',
  ),
  EVENT_LOG_TLS_CERT: variable(text, 'none', 'A PEM file with the certificate that NATS asks clients for.'),
  EVENT_LOG_TLS_KEY: variable(text, 'none', 'A PEM file with its key.'),
  EVENT_LOG_STREAM: variable(streamName, 'signalbox-events', 'The name of the stream.'),
  EVENT_LOG_REPLICAS: variable(copies, '3 in a cluster, else 1', 'Copies of the stream: 1, 3 or 5.'),
  EVENT_LOG_MAX_AGE_DAYS: variable(integer(1, 3650), '7', 'Days that the log keeps an event.'),
  EVENT_LOG_MAX_BYTES: variable(
    integer(GIBIBYTE, Number.MAX_SAFE_INTEGER),
    'no limit but the age',
    'Bytes that the log keeps, at least 1 GiB. The oldest events are removed first.',
  ),
  EVENT_LOG_MONITOR_URLS: variable(
    (value: string) => list(value).map(httpUrl),
    'empty',
    'The monitoring ports of the servers of NATS (http://host:8222), comma-separated: `signalbox doctor` reads there how they write to disk.',
  ),
  AWS_ACCESS_KEY_ID: variable(
    text,
    'none',
    'The access key of object storage, for `signalbox ledger` with an archive in a bucket; no other part of the service reads it or the four below.',
  ),
  AWS_SECRET_ACCESS_KEY: secretVariable(text, 'none', 'Its secret.'),
  AWS_SESSION_TOKEN: secretVariable(text, 'none', 'The session token of temporary credentials.'),
  AWS_REGION: variable(text, 'us-east-1', 'The region of the bucket.'),
  AWS_ENDPOINT_URL_S3: variable(
    text,
    'that of AWS in the region',
    'The URL of another service that speaks the protocol of S3, such as https://storage.example.com.',
  ),
} as const
