<?php
// php verify.php <secret> <header> [unix seconds] < body    prints "ok" or the reason (PHP 7.1 or newer)
declare(strict_types=1);

const TOLERANCE_SECONDS = 300;

/**
 * Returns "ok" or the reason for refusing. $secret is the whole "whsec_..." string, $header the value of
 * x-service-signature, $rawBody file_get_contents('php://input') (never re-encoded JSON), $now Unix seconds.
 */
function verify(string $secret, string $header, string $rawBody, int $now): string
{
    $part = '[a-z][a-z0-9]*=[!-+\--~]+';
    if (!preg_match("/\\A$part(,$part)*\\z/", $header)) {
        return 'header_malformed';
    }
    $values = ['t' => [], 'v1' => []];
    foreach (explode(',', $header) as $entry) {
        [$name, $value] = explode('=', $entry, 2);
        $values[$name][] = $value;
    }
    if (count($values['t']) !== 1 || !preg_match('/\A(0|[1-9][0-9]{0,11})\z/', $values['t'][0])) {
        return 'header_malformed';
    }
    if ($values['v1'] === [] || count(preg_grep('/\A[0-9a-f]{64}\z/', $values['v1'])) !== count($values['v1'])) {
        return 'header_malformed';
    }

    $age = $now - (int) $values['t'][0];
    if ($age > TOLERANCE_SECONDS) {
        return 'timestamp_too_old';
    }
    if ($age < -TOLERANCE_SECONDS) {
        return 'timestamp_too_new';
    }

    $expected = hash_hmac('sha256', $values['t'][0] . '.' . $rawBody, $secret);
    foreach ($values['v1'] as $signature) {
        if (hash_equals($expected, $signature)) {
            return 'ok';
        }
    }
    return 'signature_mismatch';
}

if (realpath($argv[0] ?? '') === __FILE__) {
    $result = verify($argv[1], $argv[2], file_get_contents('php://stdin'), (int) ($argv[3] ?? time()));
    echo $result, "\n";
    exit($result === 'ok' ? 0 : 1);
}
