// cargo run --quiet -- <secret> <header> [unix seconds] < body    prints "ok" or the reason (Rust 1.85 or newer)
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

const TOLERANCE_SECONDS: i64 = 300;

/// Returns "ok" or the reason for refusing. `secret` is the whole "whsec_..." string, `header` the value of
/// x-service-signature, `raw_body` the bytes as they arrived (never re-serialised JSON), `now` Unix seconds.
pub fn verify(secret: &str, header: &str, raw_body: &[u8], now: i64) -> &'static str {
    let (mut times, mut signatures) = (Vec::new(), Vec::new());
    for part in header.split(',') {
        match part.split_once('=') {
            Some((name, value)) if is_name(name) && is_value(value) => match name {
                "t" => times.push(value),
                "v1" => signatures.push(value),
                _ => {}
            },
            _ => return "header_malformed",
        }
    }
    let [time] = times[..] else { return "header_malformed" };
    let Some(signed_at) = parse_seconds(time) else { return "header_malformed" };
    let Some(signatures) = signatures.into_iter().map(parse_signature).collect::<Option<Vec<_>>>() else {
        return "header_malformed";
    };
    if signatures.is_empty() {
        return "header_malformed";
    }

    if now - signed_at > TOLERANCE_SECONDS {
        return "timestamp_too_old";
    }
    if signed_at - now > TOLERANCE_SECONDS {
        return "timestamp_too_new";
    }

    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(format!("{time}.").as_bytes());
    mac.update(raw_body);
    // verify_slice compares in constant time.
    match signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok()) {
        true => "ok",
        false => "signature_mismatch",
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
}

fn is_value(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_ascii_graphic())
}

fn parse_seconds(text: &str) -> Option<i64> {
    let is_canonical = text.len() <= 12 && text.chars().all(|c| c.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_canonical.then(|| text.parse().ok()).flatten()
}

fn parse_signature(hex: &str) -> Option<Vec<u8>> {
    let is_hex = hex.len() == 64 && hex.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    is_hex.then(|| (0..64).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let now = args.get(2).map_or_else(clock, |text| text.parse().unwrap());
    let mut raw_body = Vec::new();
    std::io::stdin().read_to_end(&mut raw_body).unwrap();
    let result = verify(&args[0], &args[1], &raw_body, now);
    println!("{result}");
    std::process::exit(if result == "ok" { 0 } else { 1 });
}
